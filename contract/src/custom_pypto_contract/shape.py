"""Shapes with named dims, in the notation of einops, and choices by the value of an argument.

A shape is a text such as ``B S1 N1 D``. Its dims are names, ints, ``*name`` (any number of dims, at
the front only), expressions without spaces (``N1*(P+R)``), and quotients (``N/16``: the size times
16 is N). In the shape of each tensor of a list, ``M[i]`` is a name with a size for each of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import nodes
from .errors import ContractError
from .expression import parse
from .fork_locks import cached


@dataclass(frozen=True)
class Dim:
    """One dim: its text, and the expression that its size, times `divisor`, must be equal to."""

    text: str
    expression: ast.expr
    divisor: int = 1
    is_variadic: bool = False

    @cached
    def name(self) -> str | None:
        """The name in ``B``, ``M[i]`` or ``B+1``; it is bound where it stands first."""
        match self.expression:
            case ast.Name(name) | ast.Subscript(ast.Name(name), ast.Name(nodes.INDEX)):
                return name
            case ast.BinOp(ast.Name(name), ast.Add(), ast.Constant(int(more))):
                return name if more > 0 and self.divisor == 1 else None
        return None

    @property
    def is_of_element(self) -> bool:
        """Whether it is a name with a size for each tensor of a list, ``M[i]``."""
        return self.name is not None and isinstance(self.expression, ast.Subscript)

    @property
    def offset(self) -> int:
        """How much larger than its name it is: 1 of ``B+1``."""
        match self.expression:
            case ast.BinOp(_, _, ast.Constant(int(offset))) if self.name is not None:
                return offset
        return 0


@dataclass(frozen=True)
class Choice:
    """One tree for each value of an argument, or for each number of dims of a tensor.

    `selector` is the argument's name, or ``tensor.ndim``. `trees` maps values to trees.
    """

    selector: str
    trees: Mapping[Any, Any]

    @property
    def tensor(self) -> str | None:
        """The tensor whose number of dims selects; None when an argument's value does."""
        tensor, _, attribute = self.selector.partition(".")
        return tensor if attribute else None

    @property
    def selector_node(self) -> ast.expr:
        """The selector as an expression."""
        tensor = self.tensor
        return nodes.expression("x" if tensor is None else "x.ndim", x=tensor or self.selector)

    def is_selected(self, value: Any) -> ast.expr:
        """Return the condition that the selector has a value."""
        return nodes.expression("x == value", x=self.selector_node, value=nodes.constant(value))


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
    """Return the leaf that the values select; None where the tree has none for a value."""
    while isinstance(tree, Choice):
        tree = tree.trees.get(value_of(tree.selector))
    return tree


def leaves(tree: Tree) -> Iterator[Any]:
    """Return every leaf of a tree."""
    yield from (leaf for _, leaf in variants(tree))


def variants(tree: Tree) -> Iterator[tuple[dict[str, Any], Any]]:
    """Return every leaf of a tree, with the value of each selector that chooses it."""
    if isinstance(tree, Choice):
        for value, each in tree.trees.items():
            for chosen, leaf in variants(each):
                yield {tree.selector: value, **chosen}, leaf
    elif tree is not None:
        yield {}, tree


def narrow(tree: Tree, chosen: Mapping[str, Any]) -> Tree:
    """Return what is left of a tree where some selectors have a value."""
    while isinstance(tree, Choice) and tree.selector in chosen:
        tree = tree.trees.get(chosen[tree.selector])
    return tree


def choices(tree: Tree) -> Iterator[Choice]:
    """Return every `Choice` in a tree, the outer first."""
    if isinstance(tree, Choice):
        yield tree
        for each in tree.trees.values():
            yield from choices(each)


_QUOTIENT = re.compile(r"(?P<whole>[^/]+)/(?P<divisor>[1-9][0-9]{0,17})")


def _dim(text: str) -> Dim:
    if text.startswith("*"):
        if not text[1:].removesuffix(f"[{nodes.INDEX}]").isidentifier():
            raise ContractError(f"dim {text!r}: * stands before a name")
        return Dim(text, parse(text[1:]), is_variadic=True)
    if text == "...":
        raise ContractError("dim '...': any number of dims has a name: write *name")
    if "," in text.partition("(")[0]:
        raise ContractError(f"dim {text!r}: write spaces between dims, and nothing else: 'B N D'")
    if text[0] == "-" and text[1:].isdigit():
        raise ContractError(f"dim {text!r}: no size is negative; a size that may be any has a name")
    quotient = _QUOTIENT.fullmatch(text)
    if quotient is not None:
        return Dim(text, parse(quotient["whole"]), divisor=int(quotient["divisor"]))
    return Dim(text, parse(text))
