"""Expressions and messages of a contract, which Python and C++ both evaluate.

An expression is Python's: ``N1 % N2 == 0``, ``x.dtype in (float16, float32)``, ``min(a, b)``. It
names arguments, dims and dtypes, and reads a tensor's `ATTRIBUTES`.
"""

from __future__ import annotations

import ast
import math
import re

from .attributes import ATTRIBUTES
from .errors import ContractError, check_known

_MOST_LEVELS = 100


def parse(text: str) -> ast.expr:
    """Return the expression in `text`, whose parts `types` checks.

    Raises:
        ContractError: it is no expression, or it uses what only costs have.
    """
    node = parse_cost(text)
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            names = ", ".join(ATTRIBUTES)
            problem = f"{text!r}: a tensor has no {each.attr!r}, but {names}"
            check_known(each.attr, ATTRIBUTES, problem)
    return node


def parse_cost(text: str) -> ast.expr:
    """Return the expression in `text`, of ``flops`` or ``bytes``.

    It may have `COST_ATTRIBUTES`, too. Only Python evaluates it.

    Raises:
        ContractError: it is no expression, or a number in it does not fit into 64 bits.
    """
    node = parse_python(text.strip(), f"{text!r} is no expression")
    for each in ast.walk(node):
        number = each.value if isinstance(each, ast.Constant) else 0
        if isinstance(number, int | float) and not is_representable(number):
            raise ContractError(f"{text!r}: {number} does not fit into 64 bits")
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


Message = tuple["str | ast.expr", ...]
"""The texts and expressions of a message, in their order."""


def parse_message(text: str) -> Message:
    """Return the parts of a message, whose expressions stand in braces.

    Raises:
        ContractError: a text in braces is no expression.
    """
    parts = re.split(r"\{(.*?)\}", text)
    return tuple(parse(part) if i % 2 else part for i, part in enumerate(parts) if part)
