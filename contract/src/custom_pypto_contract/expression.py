"""Expressions and messages of a contract, which Python and C++ both evaluate.

An expression is Python's: ``N1 % N2 == 0``, ``x.dtype in (float16, float32)``. It names arguments,
dims and dtypes, and reads a tensor's `ATTRIBUTES`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection
from typing import TypeGuard

from .attributes import ALL_ATTRIBUTES, ATTRIBUTES
from .errors import ContractError, check_known
from .evaluate import COMPARISONS, OPERATORS

_ALLOWED = (
    *OPERATORS,
    *COMPARISONS,
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
_MOST_LEVELS = 100


def parse(text: str) -> ast.expr:
    """Return the expression in `text`.

    Raises:
        ContractError: it is no expression, or it uses what contracts do not have.
    """
    return _parse(text, _ALLOWED, ATTRIBUTES)


def parse_cost(text: str) -> ast.expr:
    """Return the expression in `text`, of ``flops`` or ``bytes``.

    It may have ``min(a, b)`` and `COST_ATTRIBUTES`, too. Only Python evaluates it.

    Raises:
        ContractError: it is no expression, or it uses what costs do not have.
    """
    return _parse(text, (*_ALLOWED, ast.Call), ALL_ATTRIBUTES)


def _parse(text: str, allowed: tuple[type, ...], attributes: Collection[str]) -> ast.expr:
    node = parse_python(text.strip(), f"{text!r} is no expression")
    for each in ast.walk(node):
        if not isinstance(each, allowed):
            raise ContractError(f"{text!r}: a contract has no {type(each).__name__}")
        if isinstance(each, ast.Attribute):
            names = ", ".join(attributes)
            check_known(
                each.attr, attributes, f"{text!r}: a tensor has no {each.attr!r}, but {names}"
            )
    _check_form(node, text)
    return node


def parse_python(text: str, problem: str) -> ast.expr:
    """Return a Python expression of any kind.

    Raises:
        ContractError: it is none, or nested too deeply; the text begins with `problem`.
    """
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ContractError(f"{problem}: {error.msg}") from None
    except (RecursionError, MemoryError):
        node = None
    if node is None or _depth(node) > _MOST_LEVELS:
        raise ContractError(f"{problem}: it is nested too deeply")
    return node


def _depth(node: ast.AST) -> int:
    depth, level = 0, [node]
    while level:
        depth, level = depth + 1, [inner for each in level for inner in ast.iter_child_nodes(each)]
    return depth


def is_representable(number: int | float) -> bool:
    """Whether C++ has a number, as int64_t or double."""
    return -(2**63) < number < 2**63 if isinstance(number, int) else math.isfinite(number)


def _check_form(node: ast.AST, text: str) -> None:
    """Check that each node stands where it has a meaning."""
    inside: list[ast.AST] = list(ast.iter_child_nodes(node))
    match node:
        case ast.Compare(left, operators, rights):
            for operator, value, right in zip(operators, [left, *rights], rights, strict=False):
                _check_comparison(operator, value, right, text)
            operands = [each for each in (left, *rights) if not _is_none(each)]
            inside = [n for each in operands for n in (each.elts if _is_tuple(each) else [each])]
        case ast.Subscript(of, ast.Slice(lower, upper, step)):
            is_of_shape = isinstance(of, ast.Attribute) and of.attr == "shape"
            if not is_of_shape or lower is not None or step is not None or upper is None:
                raise ContractError(f"{text!r}: a part of a shape is written x.shape[:-2]")
            inside = [of, upper]
        case ast.Subscript(of, _):
            if not isinstance(of, ast.Name | ast.Attribute):
                raise ContractError(f"{text!r}: only shapes, strides and variadic dims have parts")
        case ast.Call(function, arguments, keywords):
            is_min = isinstance(function, ast.Name) and function.id == "min"
            if not is_min or keywords or len(arguments) < 2:
                raise ContractError(f"{text!r}: the only function is min(a, b)")
        case ast.Attribute(value):
            if not isinstance(value, ast.Name):
                raise ContractError(f"{text!r}: only a tensor has .{node.attr}")
        case ast.Constant(value):
            if not isinstance(value, bool | int | float | str):
                raise ContractError(f"{text!r}: {value!r} can stand only behind 'is'")
            if not isinstance(value, str) and not is_representable(value):
                raise ContractError(f"{text!r}: {value} does not fit into 64 bits")
        case ast.Tuple():
            raise ContractError(f"{text!r}: a list of values can stand only behind 'in'")
    for each in inside:
        _check_form(each, text)


def _check_comparison(operator: ast.cmpop, left: ast.expr, right: ast.expr, text: str) -> None:
    if isinstance(operator, (ast.Is, ast.IsNot)):
        if not isinstance(left, ast.Name) or not _is_none(right):
            raise ContractError(f"{text!r}: 'is' compares an argument with None")
    elif _is_none(left) or _is_none(right):
        raise ContractError(f"{text!r}: write 'is None'")
    if isinstance(operator, (ast.In, ast.NotIn)) != _is_tuple(right) or _is_tuple(left):
        raise ContractError(f"{text!r}: 'in' is followed by values: x in (1, 2)")
    if isinstance(right, ast.Tuple) and not right.elts:
        raise ContractError(f"{text!r}: nothing is in ()")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_tuple(node: ast.expr) -> TypeGuard[ast.Tuple]:
    return isinstance(node, ast.Tuple)


Message = tuple["str | ast.expr", ...]
"""The texts and expressions of a message, in their order."""


def parse_message(text: str) -> Message:
    """Return the parts of a message, whose expressions stand in braces.

    Raises:
        ContractError: a text in braces is no expression.
    """
    parts = re.split(r"\{(.*?)\}", text)
    return tuple(parse(part) if i % 2 else part for i, part in enumerate(parts) if part)
