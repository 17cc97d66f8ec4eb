"""The contract of one op: its arguments and results."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import nodes
from .call import Call
from .dtypes import DTYPES
from .errors import ContractError, check_known
from .expression import Message
from .expression_names import find_none_tests, names_in
from .fork_locks import cached
from .schema import Argument, Schema
from .shape import Choice, Dim, Shape, Tree, choices, leaves


@dataclass(frozen=True)
class Dtypes:
    """The allowed dtypes, and the tensor whose dtype is allowed too; both empty: any dtype."""

    allowed: tuple[str, ...]
    same_as: str | None

    @classmethod
    def parse(cls, text: str) -> Dtypes:
        """Return the dtypes in ``"float16 float32"``, ``"=x"`` or ``"=x float32"``."""
        words = text.split()
        same = [word[1:] for word in words if word.startswith("=")]
        allowed = tuple(word for word in words if not word.startswith("="))
        for word in allowed:
            check_known(word, DTYPES, f"{word!r} is none of the dtypes {' '.join(DTYPES)}")
        if len(same) > 1:
            raise ContractError(f"{text!r} names two tensors")
        return cls(allowed, same[0] if same else None)

    @property
    def are_any(self) -> bool:
        """Whether every dtype is allowed."""
        return not self.allowed and self.same_as is None


@dataclass(frozen=True)
class Tensor:
    """The contract of a tensor argument. `notation.TENSOR` explains each key."""

    name: str
    is_optional: bool
    is_list: bool
    """Whether it is a list of tensors; then the rest describes each of them."""
    length: Dim | None
    """The number of tensors in the list; None: any number."""
    shape: Tree
    """A tree of `Shape`; None: any shape."""
    ndim: tuple[int, ...]
    dtype: Dtypes
    strides: str
    required_when: Tree
    """A tree of texts, which say why; None: it is never required."""
    allowed_when: Choice | None
    """None: it is always allowed."""
    description: str
    descriptions: Mapping[str, str]
    hint: str
    values: Tree
    """A tree of texts; None: any values."""

    @cached
    def shapes(self) -> tuple[Shape, ...]:
        """The shape in each variant."""
        return tuple(leaves(self.shape))

    @property
    def element(self) -> str:
        """The name by which `checks` reads one tensor."""
        return nodes.element_of(self.name) if self.is_list else self.name

    @property
    def all_dims(self) -> Iterator[Dim]:
        """The length, and the dims of each shape."""
        if self.length is not None:
            yield self.length
        for shape in self.shapes:
            yield from shape


@dataclass(frozen=True)
class Rule:
    """Where `when` holds, `check` must hold; else the error names `argument` and says `message`."""

    argument: str
    check: ast.expr
    when: ast.expr | None
    message: Message

    @property
    def conditions(self) -> list[ast.expr]:
        """Both conditions."""
        return [self.check, *([] if self.when is None else [self.when])]

    @cached
    def names(self) -> set[str]:
        """The names in its conditions."""
        return {name for node in self.conditions for name in names_in(node)}

    @property
    def tested_for_none(self) -> set[str]:
        """The names that its conditions test for None."""
        return {name for node in self.conditions for name in find_none_tests(node)}


@dataclass(frozen=True)
class Output:
    """One return. With `like`, it has the shape, dtype and strides of that argument."""

    name: str
    shape: Tree
    dtype: Dtypes
    like: str | None
    length: Dim | None = None
    """The number of tensors in it; None where it is no list, or with `like`."""


@dataclass(frozen=True)
class Npu:
    """The kernels of an op on NPUs. `notation.NPU` says what each key means."""

    limits: Mapping[str, tuple[Rule, ...]]
    """By the name of the kernel that has them; the limits of every kernel stand under ''."""
    supports: Mapping[str, ast.expr]
    launch: tuple[Call, ...]
    graph: tuple[Call, ...]


@dataclass(frozen=True, eq=False)
class OpContract:
    """The contract of an op."""

    schema: Schema
    summary: str
    definition: str
    """The op in PyTorch, an expression of its arguments and ``torch``; or ''."""
    tensors: tuple[Tensor, ...]
    """In the order in which they are checked. The first that has a dim binds it."""
    rules: tuple[Rule, ...]
    outputs: tuple[Output, ...] | None
    """None: the contract does not describe what the op returns."""
    descriptions: Mapping[str, str]
    groups: Mapping[str, tuple[str, ...]]
    """By the name of a group: the arguments that it describes."""
    templates: Mapping[str, tuple[str, ...]]
    """By the name of a template: the tensors that it describes."""
    npu: Npu
    data: Mapping[str, Any]
    """The data that it was read from, with the keys that an op has in a manifest."""
    random: bool = False
    """Whether it draws from torch's default generator."""
    flops: Tree = None
    """A tree of expressions; None: not known."""
    bytes: Tree = None
    """A tree of expressions; None: not known."""

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

    def is_list(self, name: str) -> bool:
        """Whether an argument is a list of tensors."""
        return any(each.name == name and each.is_tensor_list for each in self.arguments)

    @cached
    def tensor_with_device(self) -> str | None:
        """The tensor whose device all others must have; a list if no argument is a Tensor."""
        lists = [each.name for each in self.tensors if each.is_list and not each.is_optional]
        plain = [each.name for each in self.arguments if each.type == "Tensor"]
        return next(iter((*plain, *lists)), None)

    @cached
    def selectors(self) -> dict[str, list[Any]]:
        """Everything that selects a variant, with its values in order."""
        trees = [
            tree
            for tensor in self.tensors
            for tree in (tensor.shape, tensor.required_when, tensor.allowed_when, tensor.values)
        ]
        trees += [output.shape for output in self.outputs or ()]
        found: dict[str, list[Any]] = {}
        for choice in (each for tree in trees for each in choices(tree)):
            values = found.setdefault(choice.selector, [])
            values.extend(value for value in choice.trees if value not in values)
        return found

    @cached
    def dims(self) -> dict[str, bool]:
        """The named dims in the order in which they are bound, and whether each is variadic."""
        names = {argument.name for argument in self.arguments}
        return {
            dim.name: dim.is_variadic
            for tensor in self.tensors
            for dim in tensor.all_dims
            if dim.name is not None and dim.name not in names
        }

    @cached
    def dims_of_elements(self) -> dict[str, Dim]:
        """The dims with a size for each tensor of a list, and the length of that list."""
        return {
            dim.name: tensor.length
            for tensor in reversed(self.tensors)
            for shape in tensor.shapes
            for dim in shape
            if tensor.length is not None and dim.name is not None and dim.is_of_element
        }

    @cached
    def may_be_none(self) -> frozenset[str]:
        """The optional arguments, and the dims that some calls do not have."""
        always = {name for tensor in self.tensors for name in self.dims_always_in(tensor)}
        optional = (each.name for each in self.arguments if each.is_optional)
        return frozenset((*optional, *(name for name in self.dims if name not in always)))

    def dims_always_in(self, tensor: Tensor) -> set[str]:
        """Return the named dims that a tensor has in every call."""
        if tensor.is_optional:
            return set()
        length = set() if tensor.length is None else self.dims_in((tensor.length,))
        may_be_empty = tensor.is_list and tensor.name != self.tensor_with_device
        return length if may_be_empty else length | self.dims_in(tensor.shape)

    def dims_in(self, tree: Tree) -> set[str]:
        """Return the named dims that are in each variant of a shape."""
        if tree is None:
            return set()
        if isinstance(tree, Choice):
            if self.values_without_tree(tree):
                return set()
            return set.intersection(*map(self.dims_in, tree.trees.values()))
        return {dim.name for dim in tree if dim.name is not None and dim.name in self.dims}

    def values_without_tree(self, choice: Choice) -> list[Any]:
        """Return the values that a selector can have and a choice does not list."""
        return [value for value in self.values_of(choice.selector) if value not in choice.trees]

    def values_of(self, selector: str) -> list[Any]:
        """Return the values that a selector can have; [None] where nothing limits them."""
        name, _, attribute = selector.partition(".")
        if attribute:
            return next((ndims_of(each) for each in self.tensors if each.name == name), [None])
        argument = self.argument(name)
        if argument.type == "bool":
            return [False, True]
        for rule in self.rules:
            match rule.check:
                case ast.Compare(ast.Name(of), [ast.In()], [ast.Tuple(elements)]) if (
                    of == name and rule.when is None and not argument.is_optional
                ):
                    # A name is that of a dtype.
                    return [ast.literal_eval(each) for each in elements if not names_in(each)]
        return [None]

    def reads_only_scalars(self, rule: Rule) -> bool:
        """Whether a rule can be checked before any tensor is."""
        return rule.names <= {each.name for each in self.arguments if not each.is_tensor}

    def describe_dim(self, tensor: Tensor, text: str) -> str:
        """Return how a message describes a dim of `tensor`."""
        return tensor.description or {**self.descriptions, **tensor.descriptions}.get(text) or text


def ndims_of(tensor: Tensor) -> list[Any]:
    """Return the numbers of dims that a tensor can have; None among them stands for any."""
    own = tensor.shape
    if isinstance(own, Choice) and own.tensor == tensor.name:
        return list(own.trees)
    if tensor.is_optional or not tensor.shapes:
        return [None]
    if any(shape and shape[0].is_variadic for shape in tensor.shapes):
        return list(tensor.ndim) or [None]
    return sorted({len(shape) for shape in tensor.shapes})
