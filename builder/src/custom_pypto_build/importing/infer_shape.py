"""Reads the shape function of an operator where all that it does is to copy shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from custom_pypto_contract import cpp_text

from .definition import read_constants

_FUNCTION = r"(?P<function>[\w:]+)"
_SET = re.compile(rf"\bSetInferShape\s*\(\s*{_FUNCTION}\s*\)")
_SHAPE = re.compile(
    r"(?:const\s+)?(?:auto|gert::Shape)\s*[*&]?\s*(?:const\s+)?(?P<name>\w+)\s*=\s*"
    r"context\s*->\s*Get(?P<what>Input|Output)Shape\s*\(\s*(?P<index>\w+)\s*\)"
)
_COPY = re.compile(r"\*\s*(?P<to>\w+)\s*=\s*\*\s*(?P<of>\w+)")
_RETURN = re.compile(r"return\s+(?:ge::)?GRAPH_SUCCESS")
# They end the function with an error, or print.
_WITHOUT_EFFECT = re.compile(
    r"if\s*\(\s*\w+\s*==\s*nullptr\s*\)\s*\{\s*return\s+(?:ge::)?GRAPH_FAILED\s*;\s*\}"
    r"|\bOPS?_(?:CHECK_NULL\w*|LOG_E_IF_NULL)\s*\(\s*context\s*,\s*\w+\s*"
    r"(?:,\s*return\s+(?:ge::)?GRAPH_FAILED\s*)?\)\s*;"
    r"|\bOPS?_LOG_?[DIWE]\s*\([^;()]*(?:\(\)[^;()]*)*\)\s*;"
)


def read_of_class(text: str, constructor: str) -> Mapping[int, int] | None:
    """Return for outputs, by number, the input whose shape the function of a class copies.

    `text` is the source of the class, without comments. None if the function is not there, or does
    anything else.
    """
    match = _SET.search(constructor)
    return None if match is None else _read(text, match["function"])


def read_of_operator(text: str, operator: str) -> Mapping[int, int] | None:
    """Return the same of the function that a source gives an operator by ``IMPL_OP``."""
    given = rf"\bIMPL_OP\w*\s*\(\s*{operator}\s*\)[^;]*?\.\s*InferShape\s*\(\s*{_FUNCTION}"
    match = re.search(given, text)
    return None if match is None else _read(text, match["function"])


def _read(text: str, function: str) -> Mapping[int, int] | None:
    name = function.rpartition("::")[2]
    parameter = r"(?:gert::)?InferShapeContext\s*\*\s*context"
    bodies = list(re.finditer(rf"\b{name}\s*\(\s*{parameter}\s*\)\s*(?=\{{)", text))
    if len(bodies) != 1:
        return None
    begin = bodies[0].end()
    end = cpp_text.find_end(text, begin)
    return None if end is None else _copies(text[begin + 1 : end - 1], read_constants(text))


def _copies(body: str, constants: Mapping[str, str]) -> Mapping[int, int] | None:
    shapes: dict[str, tuple[str, int]] = {}
    copies: dict[int, int] = {}
    for statement in cpp_text.split(_WITHOUT_EFFECT.sub("", body), ";"):
        shape, copy = _SHAPE.fullmatch(statement), _COPY.fullmatch(statement)
        if shape is not None:
            index = constants.get(shape["index"], shape["index"])
            if not re.fullmatch(r"\d{1,3}", index):
                return None
            shapes[shape["name"]] = (shape["what"], int(index))
        elif copy is not None:
            to, of = shapes.get(copy["to"]), shapes.get(copy["of"])
            if to is None or of is None or (to[0], of[0]) != ("Output", "Input"):
                return None
            copies[to[1]] = of[1]
        elif _RETURN.fullmatch(statement) is None:
            return None
    return copies
