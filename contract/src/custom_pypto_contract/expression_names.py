"""The names that an expression uses, and where they may be None."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

INFINITY = "inf"
"""The number that no other is larger than, in expressions."""


def names_in(node: ast.AST) -> set[str]:
    """Return the names in an expression, without `INFINITY` and the functions' names."""
    nodes = list(ast.walk(node))
    functions = [each.func for each in nodes if isinstance(each, ast.Call)]
    names = {each.id for each in nodes if isinstance(each, ast.Name) and each not in functions}
    return names - {INFINITY}


def find_none_tests(node: ast.AST) -> set[str]:
    """Return the names that an expression tests for None."""
    return {
        each.left.id
        for each in ast.walk(node)
        if isinstance(each, ast.Compare)
        and isinstance(each.left, ast.Name)
        and isinstance(each.ops[0], (ast.Is, ast.IsNot))
    }


def find_unguarded(node: ast.AST, may_be_none: Set[str], comparable: Set[str]) -> set[str]:
    """Return the names that an expression uses where they may be None.

    A test guards what stands behind it: ``x is None or ..``, ``x is not None and ..``. None is
    equal to nothing, so ``==`` and ``in`` need no guard for the names in `comparable`.
    """
    found: set[str] = set()
    match node:
        case ast.BoolOp(operator, operands):
            for each in operands:
                found |= find_unguarded(each, may_be_none, comparable)
                may_be_none = may_be_none - find_given(each, isinstance(operator, ast.And))
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
        found |= find_unguarded(child, may_be_none, comparable)
    return found


def find_given(node: ast.AST, truth: bool) -> set[str]:
    """Return the names that cannot be None where a condition is `truth`."""
    match node:
        case ast.Compare(ast.Name(name), [operator]):
            return {name} if isinstance(operator, ast.IsNot if truth else ast.Is) else set()
        case ast.UnaryOp(ast.Not(), operand):
            return find_given(operand, not truth)
        case ast.BoolOp(operator, operands) if isinstance(operator, ast.And) == truth:
            return {name for each in operands for name in find_given(each, truth)}
    return set()


def find_attributes(nodes: Iterable[ast.AST]) -> set[tuple[str, str]]:
    """Return the attributes that some expressions read: names of tensors and of attributes."""
    return {
        (each.value.id, each.attr)
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    }
