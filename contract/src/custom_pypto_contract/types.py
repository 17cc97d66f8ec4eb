"""The types of expressions. An expression without a type is refused."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .attributes import ALL_ATTRIBUTES, OF_LISTS
from .errors import ContractError
from .expression_names import INFINITY

Types = Mapping[str, str]
"""The type of each name: ``int``, ``float``, ``bool``, ``str``, ``dtype``, ``device``, ``tensor``,
``sizes`` (a shape or a variadic dim), ``tensors`` (a list of them), ``list`` (any other), or
``int[i]`` or ``sizes[i]``, for the dim ``M[i]`` of a list."""

ELEMENT = "[i]"
_NUMBERS = ("int", "float")


def expression_type(type_: str) -> str:
    """Return the type that an argument with a schema's type has in an expression."""
    if type_ in ("Tensor[]", "Tensor[]?"):
        return "tensors"
    if type_.endswith(("[]", "[]?")):
        return "list"
    element = type_.removesuffix("?")
    return {"Tensor": "tensor", "ScalarType": "dtype", "Device": "device"}.get(element, element)


def type_of(node: ast.expr, names: Types) -> str:
    """Return the type of an expression.

    Raises:
        ContractError: a part of it has no meaning; the text quotes that part.
    """
    match node:
        case ast.Constant(value):
            if not isinstance(value, bool | int | float | str):
                raise _error(node, "it can stand only behind 'is'")
            return type(value).__name__
        case ast.Name(name):
            return "float" if name == INFINITY else names[name]
        case ast.Attribute(ast.Name(name), attribute):
            is_known = attribute in ALL_ATTRIBUTES and attribute != "length"
            has = {"tensor": is_known, "tensors": attribute in OF_LISTS}
            if has.get(names[name], names[name] == "sizes" and attribute == "ndim"):
                return ALL_ATTRIBUTES[attribute].type
            raise _error(node, f"{name!r} is of type {names[name]}, which has no {attribute!r}")
        case ast.Subscript(
            ast.Attribute(_, "shape") as of, ast.Slice(None, ast.expr() as upper, None)
        ):
            _expect(of, names, "sizes")
            _expect(upper, names, "int")
            return "sizes"
        case ast.Subscript(_, ast.Slice()):
            raise _error(node, "a part of a shape is written x.shape[:-2]")
        case ast.Subscript(ast.Name(name), index) if names[name].endswith(ELEMENT):
            _expect(index, names, "int")
            return names[name].removesuffix(ELEMENT)
        case ast.Subscript(ast.Name() | ast.Attribute() as of, index):
            _expect(of, names, "sizes")
            _expect(index, names, "int")
            return "int"
        case ast.UnaryOp(ast.Not(), operand):
            return _expect(operand, names, "bool")
        case ast.UnaryOp(ast.USub(), operand):
            return _expect(operand, names, *_NUMBERS)
        case ast.BinOp(left, ast.FloorDiv() | ast.Mod(), right):
            _expect(left, names, "int")
            return _expect(right, names, "int")
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult(), right):
            both = {_expect(each, names, *_NUMBERS) for each in (left, right)}
            return "float" if "float" in both else "int"
        case ast.Call(function, operands, keywords):
            if ast.unparse(function) != "min" or keywords or len(operands) < 2:
                raise _error(node, "the only function is min(a, b)")
            for each in operands:
                _expect(each, names, "int")
            return "int"
        case ast.BoolOp(_, operands):
            for each in operands:
                _expect(each, names, "bool")
            return "bool"
        case ast.Compare(left, operators, rights):
            for operator, one, other in zip(operators, [left, *rights], rights, strict=False):
                _check_comparison(one, operator, other, names)
            return "bool"
    if isinstance(node, ast.Tuple):
        raise _error(node, "a list of values can stand only behind 'in'")
    kind = node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node
    raise _error(node, f"a contract has no {type(kind).__name__}")


def _check_comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr, names: Types) -> None:
    whole = ast.Compare(left, [operator], [right])
    rights = [right]
    match operator, left, right:
        case ast.Is() | ast.IsNot(), ast.Name(), ast.Constant(None):
            return
        case ast.Is() | ast.IsNot(), _, _:
            raise _error(whole, "'is' compares an argument with None")
        case (_, ast.Constant(None), _) | (_, _, ast.Constant(None)):
            raise _error(whole, "write 'is None'")
        case ast.In() | ast.NotIn(), _, ast.Tuple(rights):
            if not rights:
                raise _error(whole, "nothing is in ()")
        case (ast.In() | ast.NotIn(), _, _) | (_, _, ast.Tuple()):
            raise _error(whole, "'in' is followed by values: x in (1, 2)")
    is_order = isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    one = type_of(left, names)
    for each in rights:
        other = type_of(each, names)
        is_right = one == other and one not in ("tensor", "tensors", "list") and not is_order
        if not is_right and not (one in _NUMBERS and other in _NUMBERS):
            raise _error(
                each, f"{ast.unparse(left)!r}, of type {one}, is compared with one of type {other}"
            )


def _expect(node: ast.expr, names: Types, *expected: str) -> str:
    found = type_of(node, names)
    if found not in expected:
        raise _error(node, f"it is of type {found}, where {' or '.join(expected)} is needed")
    return found


def _error(node: ast.expr, reason: str) -> ContractError:
    return ContractError(f"{ast.unparse(node)!r}: {reason}")
