"""Builders of expressions, for checks that a contract implies."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .expression import Message

INDEX = "i"
"""The name of the index of a list's element, in expressions for each element."""


def element_of(tensors: str) -> str:
    """Return the name that the element of a list has in steps for each element: ``xs[i]``."""
    return f"{tensors}[{INDEX}]"


def list_of(element: str) -> str:
    """Return the list of an element ``xs[i]``; another name as it is."""
    return element.removesuffix(f"[{INDEX}]")


def quoted(name: str) -> tuple[str | ast.expr, ...]:
    """Return the parts of a message that show a name in quotes, of an element with its index."""
    if list_of(name) == name:
        return (f"'{name}'",)
    return (f"'{list_of(name)}[", ast.Name(INDEX), "]'")


def attribute(tensor: str, of: str) -> ast.Attribute:
    """Return ``tensor.of``."""
    return ast.Attribute(ast.Name(tensor), of)


def element(tensor: str, of: str, index: int) -> ast.Subscript:
    """Return ``tensor.of[index]``."""
    return ast.Subscript(attribute(tensor, of), constant(index))


def leading_sizes(tensor: str, without: int) -> ast.expr:
    """Return ``tensor.shape[:-without]``; with 0, ``tensor.shape``."""
    shape = attribute(tensor, "shape")
    return ast.Subscript(shape, ast.Slice(upper=constant(-without))) if without else shape


def constant(value: Any) -> ast.expr:
    """Return a constant; a negative number as Python writes it."""
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """Return ``left operator right``."""
    return ast.Compare(left, [operator], [right])


def equal(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return ``left == right``."""
    return compare(left, ast.Eq(), right)


def is_none(of: str) -> ast.expr:
    """Return ``of is None``."""
    return compare(ast.Name(of), ast.Is(), ast.Constant(None))


def is_given(of: str) -> ast.expr:
    """Return ``of is not None``."""
    return compare(ast.Name(of), ast.IsNot(), ast.Constant(None))


def one_of(left: ast.expr, names: Sequence[str]) -> ast.expr:
    """Return ``left in (names)``."""
    return compare(left, ast.In(), ast.Tuple([ast.Name(each) for each in names]))


def negation(of: ast.expr) -> ast.expr:
    """Return ``not of``."""
    return ast.UnaryOp(ast.Not(), of)


def disjunction(*conditions: ast.expr) -> ast.expr:
    """Return ``condition or condition``."""
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.Or(), list(conditions))


def product(left: ast.expr, right: int) -> ast.expr:
    """Return ``left * right``; with 1, ``left``."""
    return left if right == 1 else ast.BinOp(left, ast.Mult(), constant(right))


def message(*parts: str | ast.expr) -> Message:
    """Return a message of texts and expressions; texts that stand together become one."""
    merged: list[str | ast.expr] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return tuple(merged)
