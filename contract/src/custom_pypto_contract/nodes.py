"""Builds expressions and messages from their text, for checks that a contract implies."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any, TypeAlias

from .expression import Message

Name: TypeAlias = "str | ast.expr"
"""Another name, or an expression, that stands for a name in a text."""
INDEX = "i"
"""The name of the index of a list's element, in expressions for each element."""


def element_of(tensors: str) -> str:
    """Return the name that the element of a list has in steps for each element: ``xs[i]``."""
    return f"{tensors}[{INDEX}]"


def list_of(element: str) -> str:
    """Return the list of an element ``xs[i]``; another name as it is."""
    return element.removesuffix(f"[{INDEX}]")


def expression(text: str, **names: Name) -> ast.expr:
    """Return the expression in `text`; `names` stand for names in it."""
    found: ast.expr = _replaced(_parsed(text), names)
    return found


def message(text: str, *texts: str, **names: Name) -> Message:
    """Return a message: in `text`, ``{0}`` is the first of `texts`, ``{x.ndim}`` an expression.

    `names` has the same meaning as for `expression`.
    """
    merged: list[str | ast.expr] = []
    for index, part in enumerate(re.split(r"\{(.*?)\}", text)):
        if index % 2 and not part.isdigit():
            merged.append(expression(part, **names))
            continue
        written = texts[int(part)] if index % 2 else part
        if merged and isinstance(merged[-1], str):
            merged[-1] += written
        elif written:
            merged.append(written)
    return tuple(merged)


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _replaced(node: Any, names: dict[str, Name]) -> Any:
    match node:
        case ast.Name(name) if name in names:
            new = names[name]
            return ast.Name(new) if isinstance(new, str) else new
        case ast.expr():
            parts = {field: _replaced(value, names) for field, value in ast.iter_fields(node)}
            return type(node)(**parts)
        case list():
            return [_replaced(each, names) for each in node]
    return node


@cache
def is_given(name: str) -> ast.expr:
    """Return the condition that an argument or a dim is not None."""
    return expression("x is not None", x=name)


def constant(value: Any) -> ast.expr:
    """Return a constant; a negative number as Python writes it."""
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
