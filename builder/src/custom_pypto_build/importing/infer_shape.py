"""Reads the shape function of an operator where all that it does is to copy shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from custom_pypto_contract import cpp_text

from .source import Source

_FUNCTION = r"(?P<function>[\w:]+)"
_SET = re.compile(rf"\bSetInferShape\s*\(\s*{_FUNCTION}\s*\)")
_DEFINED = re.compile(
    r"\b(?P<name>\w+)\s*\(\s*(?:gert::)?InferShapeContext\s*\*\s*context\s*\)\s*(?=\{)"
)
_GIVEN = re.compile(
    rf"\bIMPL_OP\w*\s*\(\s*(?P<operator>\w+)\s*\)|\.\s*InferShape\s*\(\s*{_FUNCTION}"
)
_SHAPE = re.compile(
    r"(?:const\s+)?(?:auto|gert::Shape)(?:\s*[*&])?\s*(?:const\s+)?(?P<name>\w+)\s*=\s*"
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


class ShapeFunctions:
    """The shape functions of a source."""

    def __init__(self, source: Source) -> None:
        self._copies: dict[str, Mapping[int, int] | None] = {}
        self._of_operators: dict[str, str] = {}
        at = 0
        for match in _DEFINED.finditer(source.text) if "InferShape" in source.text else ():
            if match.start() >= at:
                at = source.ends[match.end()] or match.end()
                copies = _copies(source.text[match.end() + 1 : at - 1], source.constants)
                # If two functions have one name, nothing says which one is meant.
                is_first = match["name"] not in self._copies
                self._copies[match["name"]] = copies if is_first else None
        for statement in source.text.split(";") if "IMPL_OP" in source.text else ():
            operator = ""
            for match in _GIVEN.finditer(statement) if "IMPL_OP" in statement else ():
                operator = match["operator"] or operator
                if match["function"] and operator:
                    self._of_operators.setdefault(operator, match["function"])

    def of_class(self, constructor: str) -> Mapping[int, int] | None:
        """Return for outputs, by number, the input whose shape the function of a class copies.

        None if the function is not there, or does anything else.
        """
        match = _SET.search(constructor)
        return None if match is None else self._find(match["function"])

    def of_operator(self, operator: str) -> Mapping[int, int] | None:
        """Return the same for the function that ``IMPL_OP`` registers for an operator."""
        return self._find(self._of_operators.get(operator, ""))

    def _find(self, function: str) -> Mapping[int, int] | None:
        return self._copies.get(function.rpartition("::")[2])


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
