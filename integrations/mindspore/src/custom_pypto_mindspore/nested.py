"""Arguments and results as they nest: lists, tuples, and keyword arguments by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Return `value` with `function` of each leaf in its place, from the first to the last."""
    if isinstance(value, dict):
        return {key: map_leaves(function, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(function, each) for each in value)
    return function(value)


def leaves(value: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """Return the leaves of `value` that are of `kind`, from the first to the last."""
    found: list[Any] = []

    def visit(leaf: Any) -> None:
        if isinstance(leaf, kind):
            found.append(leaf)

    map_leaves(visit, value)
    return found
