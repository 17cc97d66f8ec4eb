"""Expressions in a contract: what Python and C++ both can say of an op's arguments.

``N1 % N2 == 0``, ``dtype(x) in (..)`` and the like. Names are those of arguments, of dims and of
dtypes; ``x.rank``, ``x.shape``, ``x.strides``, ``x.dtype``, ``x.device`` and ``x.is_contiguous``
are of a tensor.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .errors import ContractError, guess

DTYPES = (
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
)
ATTRIBUTES = ("rank", "shape", "strides", "dtype", "device", "is_contiguous")

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_ALLOWED = (
    *_OPERATORS,
    *_COMPARISONS,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Tuple,
    ast.Subscript,
    ast.Slice,
    ast.Attribute,
    ast.BinOp,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.Compare,
    ast.In,
    ast.NotIn,
    ast.Is,
    ast.IsNot,
)

Decide = Callable[[Any], "bool | None"]


def parse(text: str) -> ast.expr:
    """Return the expression that `text` is.

    Raises:
        ContractError: it is none, or uses what contracts have no meaning for.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ContractError(f"{text!r} is no expression: {error.msg}") from None
    for each in ast.walk(node):
        if not isinstance(each, _ALLOWED):
            raise ContractError(f"{text!r}: a contract has no {type(each).__name__}")
        if isinstance(each, ast.Attribute) and each.attr not in ATTRIBUTES:
            raise ContractError(
                f"{text!r}: a tensor has no {each.attr!r}, but {', '.join(ATTRIBUTES)}"
                + guess(each.attr, ATTRIBUTES)
            )
    return node


def names(node: ast.AST) -> set[str]:
    """Return the names in an expression."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def looked_at(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of which some expressions have an attribute: those of tensors."""
    return {
        each.value.id
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    }


def evaluate(node: ast.expr, value_of: Callable[[str], Any], decide: Decide = bool) -> Any:
    """Return the value of an expression; `value_of` gives that of a name or ``name.attribute``.

    `decide` makes True, False or None of a comparison's result, which may be of symbols; None is
    unknown, and ``and``, ``or`` and ``not`` are those of three values.
    """

    def value(each: ast.expr) -> Any:
        return evaluate(each, value_of, decide)

    match node:
        case ast.Constant(constant):
            return constant
        case ast.Name(name):
            return value_of(name)
        case ast.Attribute(ast.Name(name), attribute):
            return value_of(f"{name}.{attribute}")
        case ast.Subscript(of, ast.Slice(None, upper, None)):
            return value(of)[: None if upper is None else value(upper)]
        case ast.Subscript(of, index):
            return value(of)[value(index)]
        case ast.Tuple(elements):
            return tuple(map(value, elements))
        case ast.UnaryOp(ast.USub(), operand):
            return -value(operand)
        case ast.UnaryOp(ast.Not(), operand):
            found = value(operand)
            return None if found is None else not found
        case ast.BinOp(left, operator, right):
            return _OPERATORS[type(operator)](value(left), value(right))
        case ast.BoolOp(operator, operands):
            return _any_or_all(map(value, operands), isinstance(operator, ast.Or))
        case ast.Compare(left, operators, rights):
            values = [value(each) for each in (left, *rights)]
            results = (
                _compared(operator, a, b, decide)
                for operator, a, b in zip(operators, values, values[1:], strict=False)
            )
            return _any_or_all(results, stop=False)
    raise ContractError(f"{ast.unparse(node)} has no value")


def _any_or_all(values: Iterator[bool | None], stop: bool) -> bool | None:
    is_unknown = False
    for each in values:
        if each is not None and bool(each) == stop:
            return stop
        is_unknown |= each is None
    return None if is_unknown else not stop


def _compared(operator: ast.cmpop, a: Any, b: Any, decide: Decide) -> bool | None:
    match operator:
        case ast.Is():
            return a is b
        case ast.IsNot():
            return a is not b
        case ast.In() | ast.NotIn():
            found = _any_or_all((decide(a == each) for each in b), stop=True)
            return found if found is None or isinstance(operator, ast.In) else not found
    if isinstance(a, list) or isinstance(b, list):
        if len(a) != len(b):
            return False
        return _any_or_all((decide(x == y) for x, y in zip(a, b, strict=True)), stop=False)
    return decide(_COMPARISONS[type(operator)](a, b))


Message = tuple["str | ast.expr", ...]
"""The texts and expressions that a message consists of."""


def parse_message(text: str) -> Message:
    """Return the parts of a message with expressions in braces.

    Raises:
        ContractError: what stands in braces is no expression.
    """
    parts = re.split(r"\{(.*?)\}", text)
    return tuple(parse(part) if i % 2 else part for i, part in enumerate(parts) if part)
