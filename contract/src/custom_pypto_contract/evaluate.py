"""The value of an expression in Python, also where sizes are symbols."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

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


class _Reading(NamedTuple):
    """How the names and comparisons of an expression are read."""

    value_of: Callable[[str], Any]
    decide: Decide
    least: Callable[[Any, Any], Any]
    is_true: Callable[[Any], bool]


_Function = Callable[[_Reading], Any]
_functions: WeakKeyDictionary[ast.expr, _Function] = WeakKeyDictionary()
"""The functions of expressions. Fakes evaluate the same expressions in each call."""


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
    evaluated that they, ``a < b < c`` and ``in`` do not need; ``b`` may be evaluated twice. `least`
    is the ``min`` of two values; `is_true` says whether a divisor is 0.

    Raises:
        OverflowError: a number does not fit into 64 bits; the text is the kernels'.
    """
    function = _functions.get(node)
    if function is None:
        function = _functions[node] = _function_of(node)
    return function(_Reading(value_of, decide, least, is_true))


def _function_of(node: ast.expr) -> _Function:
    match node:
        case ast.Constant(constant):
            return lambda reading: constant
        case ast.Name(name) if name == INFINITY:
            return lambda reading: math.inf
        case ast.Name(name):
            return lambda reading: reading.value_of(name)
        case ast.Attribute(ast.Name(head), attribute):
            path = f"{head}.{attribute}"
            return lambda reading: reading.value_of(path)
        case ast.Subscript(of, ast.Slice(None, upper, None)):
            whole, end = _function_of(of), _function_of(upper or ast.Constant(None))
            return lambda reading: whole(reading)[: end(reading)]
        case ast.Subscript(of, index):
            return partial(_element, _function_of(of), _function_of(index))
        case ast.UnaryOp(ast.USub(), operand):
            return _function_of(ast.BinOp(ast.Constant(0), ast.Sub(), operand))
        case ast.UnaryOp(ast.Not(), operand):
            return partial(_opposite, _function_of(operand))
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            return partial(_calculate, operator, _function_of(left), _function_of(right))
        case ast.BoolOp(operation, operands):
            each_of, stop = [*map(_function_of, operands)], isinstance(operation, ast.Or)
            return lambda reading: _any_or_all((each(reading) for each in each_of), stop)
        case ast.Call(_, operands):
            values = [*map(_function_of, operands)]
            return lambda reading: reduce(reading.least, (each(reading) for each in values))
        case ast.Compare(left, [comparison], [ast.Tuple(choices)]):
            among = partial(_is_among, _function_of(left), [*map(_function_of, choices)])
            return among if isinstance(comparison, ast.In) else partial(_opposite, among)
        case ast.Compare(left, [comparison], [right]):
            return partial(_compare, comparison, _function_of(left), _function_of(right))
        case ast.Compare(left, operators, operands):
            # a < b < c is a < b and b < c.
            pairs = zip([left, *operands], operators, operands, strict=False)
            each_pair: list[ast.expr] = [
                ast.Compare(one, [sign], [other]) for one, sign, other in pairs
            ]
            return _function_of(ast.BoolOp(ast.And(), each_pair))
    raise ContractError(f"{ast.unparse(node)} has no value")


def _element(of: _Function, index: _Function, reading: _Reading) -> Any:
    found, position = of(reading), index(reading)
    # As in custom_pypto/op_contract.h.
    return found[position] if -len(found) <= position < len(found) else -1


def _opposite(of: _Function, reading: _Reading) -> bool | None:
    found = of(reading)
    return None if found is None else not found


def _calculate(operator: ast.operator, left: _Function, right: _Function, reading: _Reading) -> Any:
    a, b = left(reading), right(reading)
    # A size may be 0: `Operands` of custom_pypto/op_contract.h divides by 0 the same way.
    if isinstance(operator, ast.FloorDiv | ast.Mod) and reading.is_true(b == 0):
        return 0 if isinstance(operator, ast.FloorDiv) else a
    result = OPERATORS[type(operator)](a, b)
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        operation = ast.unparse(ast.BinOp(ast.Constant(a), operator, ast.Constant(b)))
        raise OverflowError(f"its arguments give {operation}, which does not fit into 64 bits")
    return result


def _any_or_all(values: Iterable[bool | None], stop: bool) -> bool | None:
    is_unknown = False
    for each in values:
        if each is not None and bool(each) == stop:
            return stop
        is_unknown |= each is None
    return None if is_unknown else not stop


def _is_among(of: _Function, choices: list[_Function], reading: _Reading) -> bool | None:
    found = of(reading)
    return _any_or_all((reading.decide(found == each(reading)) for each in choices), stop=True)


def _compare(
    operator: ast.cmpop, left: _Function, right: _Function, reading: _Reading
) -> bool | None:
    a, b = left(reading), right(reading)
    if isinstance(operator, ast.Is | ast.IsNot):
        return (a is b) == isinstance(operator, ast.Is)
    if isinstance(a, list) or isinstance(b, list):
        if len(a) != len(b):
            return False
        return _any_or_all((reading.decide(x == y) for x, y in zip(a, b, strict=True)), stop=False)
    _, compare = COMPARISONS[type(operator)]
    return reading.decide(compare(a, b))
