"""A call of an NPU kernel or a graph operator in one line: ``aclnnAdd(x, y, scalar(1), out)``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from .errors import ContractError
from .expression import is_representable, parse_python

GRAPH_ATTRIBUTES = {
    "int": "Int",
    "float": "Float",
    "bool": "Bool",
    "str": "Str",
    "int[]": "ListInt",
}
"""The types in a schema that a graph operator takes as attributes, with torchair's name of each."""


@dataclass(frozen=True)
class Value:
    """A value that is passed: a name, a constant, a list of tensors or ints, or ``scalar(1)``."""

    node: ast.expr
    is_scalar: bool = False

    @property
    def names(self) -> set[str]:
        """The arguments and outputs in it."""
        return {each.id for each in ast.walk(self.node) if isinstance(each, ast.Name)}


@dataclass(frozen=True)
class Call:
    """One call: values of a kernel by position, or of an operator by parameter, and its results."""

    text: str
    name: str
    values: tuple[tuple[str, Value], ...]
    """Pairs of the parameter's name, or '', and the value."""
    results: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """The arguments and outputs that are passed."""
        return {name for _, value in self.values for name in value.names}

    @property
    def in_place(self) -> dict[str, str]:
        """The value of each parameter that is a result too: GE writes it in place."""
        return {
            name: ast.unparse(value.node) for name, value in self.values if name in self.results
        }


_CALL = re.compile(r"(?P<call>.+?\))\s*(?:->\s*(?P<results>[\w\s,]+))?")


def parse_call(text: str) -> Call:
    """Return the call in `text`.

    Raises:
        ContractError: it is no call, or passes something that cannot be passed.
    """
    match = _CALL.fullmatch(text.strip())
    problem = f"{text!r} is no call; write 'aclnnName(self, out)' or 'Operator(x=self) -> y'"
    if match is None:
        raise ContractError(problem)
    node = parse_python(match["call"], problem)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ContractError(problem)
    results = tuple(re.split(r"\s*,\s*", match["results"].strip())) if match["results"] else ()
    values = [("", _value(each)) for each in node.args]
    values += [(each.arg or "", _value(each.value)) for each in node.keywords]
    return Call(text, node.func.id, tuple(values), results)


def _value(node: ast.expr) -> Value:
    match node := _fold(node):
        case ast.Call(ast.Name("scalar"), [number], []) if _is_number(_fold(number)):
            return Value(_fold(number), is_scalar=True)
        case ast.Name():
            return Value(node)
        case ast.Constant(value) if _is_number(node) or isinstance(value, str | None):
            return Value(node)
        case ast.List(elements) if elements:
            folded = [_fold(each) for each in elements]
            if all(isinstance(each, ast.Name) for each in folded) or all(map(_is_int, folded)):
                return Value(ast.List(folded))
    raise ContractError(
        f"{ast.unparse(node)!r} cannot be passed; pass arguments, outputs, numbers, strings, None,"
        " lists of tensors or ints, or scalar(number)"
    )


def _fold(node: ast.expr) -> ast.expr:
    """Return a negative number as a constant, anything else as it is."""
    match node:
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return ast.Constant(-number)
    return node


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(int() | float() as number):
            return is_representable(number)
    return False


def _is_int(node: ast.expr) -> bool:
    return _is_number(node) and isinstance(node, ast.Constant) and type(node.value) is int
