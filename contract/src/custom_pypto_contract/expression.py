"""Expressions in a contract: what Python and C++ both can say of an op's arguments.

``N1 % N2 == 0``, ``dtype(x) in (..)`` and the like. Names are those of arguments, of dims and of
dtypes; ``x.rank``, ``x.shape``, ``x.strides``, ``x.dtype``, ``x.device`` and ``x.is_contiguous``
are of a tensor.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, TypeGuard

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
    # By 0, which a size may be, as custom_pypto/op_contract.h does it.
    ast.FloorDiv: lambda a, b: 0 if _is_zero(b) else a // b,
    ast.Mod: lambda a, b: a if _is_zero(b) else a % b,
}


def _is_zero(divisor: Any) -> bool:
    """Whether a divisor is 0; a symbol is not."""
    return isinstance(divisor, int) and divisor == 0


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
    _check_form(node, text)
    return node


def is_representable(number: int | float) -> bool:
    """Whether C++ has a number, as int64_t or double."""
    return -(2**63) < number < 2**63 if isinstance(number, int) else math.isfinite(number)


def _check_form(node: ast.AST, text: str) -> None:
    """Check that what is allowed by itself stands where it has a meaning."""
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
        case ast.Attribute(value):
            if not isinstance(value, ast.Name):
                raise ContractError(f"{text!r}: .{node.attr} is of a tensor")
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


def names(node: ast.AST) -> set[str]:
    """Return the names in an expression."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def compared_with_none(node: ast.AST) -> set[str]:
    """Return the names of which an expression asks whether they are None."""
    return {
        each.left.id
        for each in ast.walk(node)
        if isinstance(each, ast.Compare)
        and isinstance(each.left, ast.Name)
        and isinstance(each.ops[0], (ast.Is, ast.IsNot))
    }


def unguarded(node: ast.AST, may_be_none: Set[str], comparable: Set[str]) -> set[str]:
    """Return the names that are used where they may be None.

    An expression guards by asking first: ``x is None or ..``, ``x is not None and ..``. What is
    None is equal to nothing, so the `comparable` need no guard before ``==`` and ``in``.
    """
    found: set[str] = set()
    match node:
        case ast.BoolOp(operator, operands):
            for each in operands:
                found |= unguarded(each, may_be_none, comparable)
                may_be_none = may_be_none - given_if(each, isinstance(operator, ast.And))
            return found
        case ast.Compare(_, [ast.Is() | ast.IsNot()]):
            return found
        case ast.Compare(left, operators, rights):
            operands = [left, *rights]
            is_equality = all(
                isinstance(each, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for each in operators
            )
            if is_equality and not any(isinstance(each, ast.Attribute) for each in operands):
                names_alone = (each.id for each in operands if isinstance(each, ast.Name))
                may_be_none = may_be_none - (comparable & set(names_alone))
        case ast.Name(name):
            return {name} & may_be_none
    for child in ast.iter_child_nodes(node):
        found |= unguarded(child, may_be_none, comparable)
    return found


def given_if(node: ast.AST, truth: bool) -> set[str]:
    """Return the names that are not None wherever a condition is `truth`."""
    match node:
        case ast.Compare(ast.Name(name), [operator]):
            return {name} if isinstance(operator, ast.IsNot if truth else ast.Is) else set()
        case ast.UnaryOp(ast.Not(), operand):
            return given_if(operand, not truth)
        case ast.BoolOp(operator, operands) if isinstance(operator, ast.And) == truth:
            return {name for each in operands for name in given_if(each, truth)}
    return set()


def looked_at(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of which some expressions have an attribute."""
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
            found, position = value(of), value(index)
            # As in custom_pypto/op_contract.h.
            return found[position] if -len(found) <= position < len(found) else -1
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
