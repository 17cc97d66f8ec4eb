"""The value of an expression in Python, also where sizes are symbols."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from .errors import ContractError
from .expression_names import INFINITY

Decide = Callable[[Any], "bool | None"]
"""Turns the result of a comparison into True, False or None: unknown."""

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}

COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
}
"""Their signs, which C++ has too, and what they compute."""


def evaluate(
    node: ast.expr,
    value_of: Callable[[str], Any],
    decide: Decide = bool,
    least: Callable[[Any, Any], Any] = min,
    is_true: Callable[[Any], bool] = bool,
) -> Any:
    """Return the value of an expression; `value_of` gives a name's or ``name.attribute``'s.

    `decide` turns the result of a comparison, which may be symbolic, into True, False or None:
    unknown. ``and``, ``or`` and ``not`` use three-valued logic. As in C++, no operand is
    evaluated that they, ``a < b < c`` and ``in`` do not need. `least` is the
    ``min`` of two values; `is_true` says whether a divisor is 0.

    Raises:
        OverflowError: a number does not fit into 64 bits; the text is the kernels'.
    """

    def value(each: ast.expr) -> Any:
        return evaluate(each, value_of, decide, least, is_true)

    match node:
        case ast.Constant(constant):
            return constant
        case ast.Name(name):
            return math.inf if name == INFINITY else value_of(name)
        case ast.Attribute(ast.Name(name), attribute):
            return value_of(f"{name}.{attribute}")
        case ast.Subscript(of, ast.Slice(None, upper, None)):
            return value(of)[: None if upper is None else value(upper)]
        case ast.Subscript(of, index):
            found, position = value(of), value(index)
            # As in custom_pypto/op_contract.h.
            return found[position] if -len(found) <= position < len(found) else -1
        case ast.UnaryOp(ast.USub(), operand):
            return _calculate(ast.Sub(), 0, value(operand))
        case ast.UnaryOp(ast.Not(), operand):
            found = value(operand)
            return None if found is None else not found
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            dividend, divisor = value(left), value(right)
            # A size may be 0: `Operands` of custom_pypto/op_contract.h divides by 0 the same way.
            if isinstance(operator, ast.FloorDiv | ast.Mod) and is_true(divisor == 0):
                return 0 if isinstance(operator, ast.FloorDiv) else dividend
            return _calculate(operator, dividend, divisor)
        case ast.BoolOp(operator, operands):
            return _any_or_all(map(value, operands), isinstance(operator, ast.Or))
        case ast.Call(_, operands):
            return reduce(least, map(value, operands))
        case ast.Compare():
            return _any_or_all(_comparisons(node, value, decide), stop=False)
    raise ContractError(f"{ast.unparse(node)} has no value")


def _calculate(operator: ast.operator, a: Any, b: Any) -> Any:
    result = OPERATORS[type(operator)](a, b)
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        operation = ast.unparse(ast.BinOp(ast.Constant(a), operator, ast.Constant(b)))
        raise OverflowError(f"its arguments give {operation}, which does not fit into 64 bits")
    return result


def _any_or_all(values: Iterator[bool | None], stop: bool) -> bool | None:
    is_unknown = False
    for each in values:
        if each is not None and bool(each) == stop:
            return stop
        is_unknown |= each is None
    return None if is_unknown else not stop


def _comparisons(
    node: ast.Compare, value: Callable[[ast.expr], Any], decide: Decide
) -> Iterator[bool | None]:
    """Yield the results of ``a < b < c``, one for each operator."""
    left = value(node.left)
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        if isinstance(comparator, ast.Tuple):
            equals = (decide(left == value(each)) for each in comparator.elts)
            found = _any_or_all(equals, stop=True)
            yield found if found is None or isinstance(operator, ast.In) else not found
        else:
            right = value(comparator)
            yield _compared(operator, left, right, decide)
            left = right


def _compared(operator: ast.cmpop, a: Any, b: Any, decide: Decide) -> bool | None:
    if isinstance(operator, ast.Is | ast.IsNot):
        return (a is b) == isinstance(operator, ast.Is)
    if isinstance(a, list) or isinstance(b, list):
        if len(a) != len(b):
            return False
        return _any_or_all((decide(x == y) for x, y in zip(a, b, strict=True)), stop=False)
    _, compare = COMPARISONS[type(operator)]
    return decide(compare(a, b))
