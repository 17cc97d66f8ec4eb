"""The types of expressions, so that a contract error comes before one of the C++ compiler."""

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
            return type(value).__name__
        case ast.Name(name):
            return "float" if name == INFINITY else names[name]
        case ast.Attribute(ast.Name(name), attribute):
            has = {"tensor": attribute != "length", "tensors": attribute in OF_LISTS}
            if has.get(names[name], names[name] == "sizes" and attribute == "ndim"):
                return ALL_ATTRIBUTES[attribute].type
            raise _error(node, f"{name!r} is of type {names[name]}, which has no {attribute!r}")
        case ast.Subscript(of, ast.Slice(upper=ast.expr() as upper)):
            _expect(of, names, "sizes")
            _expect(upper, names, "int")
            return "sizes"
        case ast.Subscript(ast.Name(name), index) if names[name].endswith(ELEMENT):
            _expect(index, names, "int")
            return names[name].removesuffix(ELEMENT)
        case ast.Subscript(of, index):
            _expect(of, names, "sizes")
            _expect(index, names, "int")
            return "int"
        case ast.UnaryOp(ast.Not(), operand):
            return _expect(operand, names, "bool")
        case ast.UnaryOp(_, operand):
            return _expect(operand, names, *_NUMBERS)
        case ast.BinOp(left, ast.FloorDiv() | ast.Mod(), right):
            _expect(left, names, "int")
            return _expect(right, names, "int")
        case ast.BinOp(left, _, right):
            both = {_expect(each, names, *_NUMBERS) for each in (left, right)}
            return "float" if "float" in both else "int"
        case ast.Call(_, operands):
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
    raise AssertionError(ast.dump(node))


def _check_comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr, names: Types) -> None:
    if isinstance(operator, ast.Is | ast.IsNot):
        return
    rights = right.elts if isinstance(right, ast.Tuple) else [right]
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
