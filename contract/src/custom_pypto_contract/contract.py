"""The contract of one op: what its arguments must be and what it returns."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import expression
from .call import Call
from .errors import ContractError, guess
from .expression import DTYPES, Message
from .schema import Argument, Schema
from .shape import Choice, Shape, Tree, choices, leaves

STRIDES = ("any", "last", "all")


@dataclass(frozen=True)
class Dtypes:
    """The dtypes allowed, and the tensor whose dtype is allowed besides; empty: any."""

    allowed: tuple[str, ...]
    same_as: str | None

    @classmethod
    def parse(cls, text: str) -> Dtypes:
        """Return what ``"float16 float32"``, ``"=x"`` or ``"=x float32"`` says."""
        words = text.split()
        same = [word[1:] for word in words if word.startswith("=")]
        allowed = tuple(word for word in words if not word.startswith("="))
        for word in allowed:
            if word not in DTYPES:
                raise ContractError(
                    f"{word!r} is none of the dtypes {' '.join(DTYPES)}{guess(word, DTYPES)}"
                )
        if len(same) > 1:
            raise ContractError(f"{text!r} names two tensors")
        return cls(allowed, same[0] if same else None)

    @property
    def are_any(self) -> bool:
        """Whether every dtype is allowed."""
        return not self.allowed and self.same_as is None


@dataclass(frozen=True)
class Tensor:
    """What a tensor argument must be."""

    name: str
    is_optional: bool
    shape: Tree
    """Of `Shape`; None: any shape."""
    ranks: tuple[int, ...]
    """Those of a shape with a variadic dim; empty: any."""
    dtype: Dtypes
    required: Tree
    """Of texts, by value: why it must be given; None: it need not be."""
    only: Choice | None
    """The values with which it may be given."""
    strides: str
    """``last``: the last dimension is contiguous; ``all``: the tensor is."""
    hint: str
    """What to do about wrong strides, or a wrong shape that is variadic as a whole."""
    words: str | Mapping[str, str]
    """What its dims are, for messages: of all of them, or by dim."""
    values: Tree
    """Of texts: which integers may be in it, for samples; kernels check them by themselves."""

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape in each variant."""
        return tuple(leaves(self.shape))


@dataclass(frozen=True)
class Rule:
    """``that`` holds, if ``when`` does; else the error names the argument ``of`` and says why."""

    of: str
    that: ast.expr
    when: ast.expr | None
    says: Message

    @property
    def names(self) -> set[str]:
        """The names in its conditions."""
        return {name for node in self.conditions for name in expression.names(node)}

    @property
    def asked(self) -> set[str]:
        """The names of which the rule asks whether they are None."""
        return {name for node in self.conditions for name in expression.compared_with_none(node)}

    @property
    def conditions(self) -> list[ast.expr]:
        """What holds, and when it must."""
        return [self.that, *([] if self.when is None else [self.when])]


@dataclass(frozen=True)
class Output:
    """One return. `like`: with shape, dtype and strides of that argument, instead of the others."""

    name: str
    shape: Tree
    dtype: Dtypes
    like: str | None


@dataclass(frozen=True)
class Npu:
    """What NPU kernels are, and what they take."""

    limits: Mapping[str, tuple[Rule, ...]]
    """By the name of what has them; of all NPU kernels under ''."""
    fits: Mapping[str, ast.expr]
    """By name: where a kernel fits that is not the only way."""
    launch: tuple[Call, ...]
    graph: tuple[Call, ...]


@dataclass(frozen=True, eq=False)
class Op:
    """The contract of an op."""

    schema: Schema
    about: str
    definition: str
    """The op in PyTorch: an expression of its arguments and ``torch``; or ''."""
    tensors: tuple[Tensor, ...]
    """In the order in which they are checked: the first that has a dim binds it."""
    rules: tuple[Rule, ...]
    outputs: tuple[Output, ...] | None
    """None: the contract does not say what the op returns."""
    words: Mapping[str, str]
    groups: Mapping[str, tuple[str, ...]]
    """By name: arguments that several ops share."""
    npu: Npu
    data: Mapping[str, Any]
    """What it was made of, with the keys of a manifest's op."""

    @property
    def name(self) -> str:
        """Its name, with the overload when it has one."""
        return self.schema.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The schema's arguments."""
        return self.schema.arguments

    def argument(self, name: str) -> Argument:
        """Return the argument called `name`."""
        return next(each for each in self.arguments if each.name == name)

    @cached_property
    def selectors(self) -> dict[str, list[Any]]:
        """Everything that is chosen by, with its values in order."""
        trees = [tree for t in self.tensors for tree in (t.shape, t.required, t.only, t.values)]
        trees += [output.shape for output in self.outputs or ()]
        found: dict[str, list[Any]] = {}
        for choice in (each for tree in trees for each in choices(tree)):
            values = found.setdefault(choice.selector, [])
            values.extend(value for value in choice.of if value not in values)
        return found

    @cached_property
    def dims(self) -> dict[str, bool]:
        """The named dims in the order in which they are bound, and whether each is variadic."""
        names = {argument.name for argument in self.arguments}
        return {
            dim.name: dim.is_variadic
            for tensor in self.tensors
            for shape in tensor.shapes
            for dim in shape
            if dim.name is not None and dim.name not in names
        }

    @cached_property
    def may_be_none(self) -> frozenset[str]:
        """The optional arguments, and the dims that some calls do not have."""
        always = {name for tensor in self.tensors for name in self.always_has(tensor)}
        optional = (each.name for each in self.arguments if each.is_optional)
        return frozenset((*optional, *(name for name in self.dims if name not in always)))

    def always_has(self, tensor: Tensor) -> set[str]:
        """Return the named dims that a tensor has in every call."""
        return set() if tensor.is_optional else self._always_has(tensor.shape)

    def _always_has(self, tree: Tree) -> set[str]:
        if tree is None:
            return set()
        if isinstance(tree, Choice):
            if self.left_out(tree):
                return set()
            return set.intersection(*map(self._always_has, tree.of.values()))
        return {dim.name for dim in tree if dim.name is not None and dim.name in self.dims}

    def left_out(self, choice: Choice) -> list[Any]:
        """Return the values that a choice says nothing for, though the selector can have them."""
        return [value for value in self.values_of(choice.selector) if value not in choice.of]

    def values_of(self, selector: str) -> list[Any]:
        """Return what a selector can be: by a rule of it, or by the shapes of its tensor.

        Of one that may be anything, that is None among them.
        """
        name, _, is_rank = selector.partition(".")
        if is_rank:
            return next((ranks_of(each) for each in self.tensors if each.name == name), [None])
        argument = self.argument(name)
        if argument.type == "bool":
            return [False, True]
        for rule in self.rules:
            match rule.that:
                case ast.Compare(ast.Name(of), [ast.In()], [ast.Tuple(elements)]) if (
                    of == name and rule.when is None and not argument.is_optional
                ):
                    return [each.value for each in elements if isinstance(each, ast.Constant)]
        return [None]

    def is_of_scalars(self, rule: Rule) -> bool:
        """Whether the rule can be checked before any tensor is looked at."""
        scalars = {each.name for each in self.arguments if not each.is_tensor}
        return rule.names <= scalars

    def words_of(self, tensor: Tensor, text: str) -> str:
        """Return what a message says that a dim of `tensor` is."""
        if isinstance(tensor.words, str):
            return tensor.words or self.words.get(text, text)
        return tensor.words.get(text) or self.words.get(text, text)


def ranks_of(tensor: Tensor) -> list[Any]:
    """Return the ranks that a tensor can have; with None, it can have any."""
    own = tensor.shape
    if isinstance(own, Choice) and own.ranked == tensor.name:
        return list(own.of)
    if tensor.is_optional or not tensor.shapes:
        return [None]
    if any(shape and shape[0].is_variadic for shape in tensor.shapes):
        return list(tensor.ranks) or [None]
    return sorted({len(shape) for shape in tensor.shapes})
