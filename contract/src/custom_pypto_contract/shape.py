"""Shapes with named dimensions, in einops' notation, and what is chosen among by an argument.

A shape is text such as ``B S1 N1 D``. Its dims are names, ints, ``*name`` (any number of dims, at
the front only), expressions without spaces (``N1*(P+R)``), and quotients (``N/16``: the size times
16 is N).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ContractError
from .expression import parse


@dataclass(frozen=True)
class Dim:
    """One dim: its text, and the expression that its size, times `divisor`, must be equal to."""

    text: str
    expression: ast.expr
    divisor: int = 1
    is_variadic: bool = False

    @property
    def name(self) -> str | None:
        """The dim's name, if it is a plain one; it is bound where it stands first."""
        return self.expression.id if isinstance(self.expression, ast.Name) else None


@dataclass(frozen=True)
class Choice:
    """What holds by the value of a string or bool argument, or by a tensor's rank.

    `selector` is the argument's name, or ``tensor.rank``. `of` maps values to what is chosen.
    """

    selector: str
    of: Mapping[Any, Any]

    @property
    def ranked(self) -> str | None:
        """The tensor by whose rank is chosen; None when it is by a value."""
        return self.selector.removesuffix(".rank") if self.selector.endswith(".rank") else None


Shape = tuple[Dim, ...]
Tree = Any
"""A leaf, or a `Choice` of trees."""


def parse_shape(text: str) -> Shape:
    """Return the dims of `text`.

    Raises:
        ContractError: one of them is no dim.
    """
    shape = tuple(map(_dim, text.split()))
    if any(dim.is_variadic for dim in shape[1:]):
        raise ContractError(f"shape {text!r}: *name can stand at the front only")
    return shape


def shape_text(shape: Shape) -> str:
    """Return a shape as messages show it: ``[B, S1, N1, D]``."""
    return "[" + ", ".join(dim.text for dim in shape) + "]"


def resolve(tree: Tree, value_of: Callable[[str], Any]) -> Any:
    """Return the leaf that a tree comes to; None where a value is none of those listed."""
    while isinstance(tree, Choice):
        tree = tree.of.get(value_of(tree.selector))
    return tree


def leaves(tree: Tree) -> Iterator[Any]:
    """Return every leaf of a tree."""
    if isinstance(tree, Choice):
        for each in tree.of.values():
            yield from leaves(each)
    elif tree is not None:
        yield tree


def choices(tree: Tree) -> Iterator[Choice]:
    """Return every `Choice` in a tree, the outer first."""
    if isinstance(tree, Choice):
        yield tree
        for each in tree.of.values():
            yield from choices(each)


_QUOTIENT = re.compile(r"(?P<whole>[^/]+)/(?P<divisor>[1-9][0-9]*)")


def _dim(text: str) -> Dim:
    if text.startswith("*"):
        if not text[1:].isidentifier():
            raise ContractError(f"dim {text!r}: * stands before a name")
        return Dim(text, parse(text[1:]), is_variadic=True)
    if text == "...":
        raise ContractError("dim '...': any number of dims has a name: write *name")
    quotient = _QUOTIENT.fullmatch(text)
    if quotient is not None:
        return Dim(text, parse(quotient["whole"]), divisor=int(quotient["divisor"]))
    return Dim(text, parse(text))
