"""Reads the shape function of an operator where all that it does is to copy shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from custom_pypto_contract import cpp_text

_FUNCTION = r"(?P<function>[\w:]+)"
_SET = re.compile(rf"\bSetInferShape\s*\(\s*{_FUNCTION}\s*\)")
_SHAPE = re.compile(
    r"(?:const\s+)?(?:auto|gert::Shape)\s*[*&]?\s*(?:const\s+)?(?P<name>\w+)\s*=\s*"
    r"context\s*->\s*Get(?P<what>Input|Output)Shape\s*\(\s*(?P<index>\d{1,3})\s*\)"
)
_COPY = re.compile(r"\*\s*(?P<to>\w+)\s*=\s*\*\s*(?P<of>\w+)")
_RETURN = re.compile(r"return\s+(?:ge::)?GRAPH_SUCCESS")
_NULL_CHECK = re.compile(
    r"if\s*\(\s*\w+\s*==\s*nullptr\s*\)\s*\{\s*return\s+(?:ge::)?GRAPH_FAILED\s*;\s*\}"
    r"|\bOPS?_CHECK_NULL\w*\s*\(\s*context\s*,\s*\w+\s*\)\s*;"
)


def read(text: str, operator: str, constructor: str) -> Mapping[int, int] | None:
    """Return for outputs, by number, the input whose shape they have.

    None if the function is not in `text`, a source without comments, or does anything else.
    """
    implementation = rf"IMPL_OP\w*\s*\(\s*{operator}\s*\)[^;]*?\.\s*InferShape\s*\(\s*{_FUNCTION}"
    match = _SET.search(constructor) or re.search(implementation, text)
    if match is None:
        return None
    name = match["function"].rpartition("::")[2]
    signature = rf"\b{name}\s*\(\s*(?:gert::)?InferShapeContext\s*\*\s*context\s*\)\s*(?=\{{)"
    bodies = list(re.finditer(signature, text))
    if len(bodies) != 1:
        return None
    end = cpp_text.find_end(text, bodies[0].end())
    return None if end is None else _copies(text[bodies[0].end() + 1 : end - 1])


def _copies(body: str) -> Mapping[int, int] | None:
    shapes: dict[str, tuple[str, int]] = {}
    copies: dict[int, int] = {}
    for statement in cpp_text.split(_NULL_CHECK.sub("", body), ";"):
        shape, copy = _SHAPE.fullmatch(statement), _COPY.fullmatch(statement)
        if shape is not None:
            shapes[shape["name"]] = (shape["what"], int(shape["index"]))
        elif copy is not None:
            to, of = shapes.get(copy["to"]), shapes.get(copy["of"])
            if to is None or of is None or (to[0], of[0]) != ("Output", "Input"):
                return None
            copies[to[1]] = of[1]
        elif _RETURN.fullmatch(statement) is None:
            return None
    return copies
