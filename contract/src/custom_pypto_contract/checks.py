"""The checks that a contract comes to, in order: what the C++ header and the fake kernel both do.

A step checks a condition, binds a dim to a size, or chooses further steps. Conditions, sizes and
messages are `expression`s; the generator of C++ prints them, the fake kernel evaluates them. So
every rule, and every error's words, are here alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import expression
from .contract import Op, Rule, Tensor
from .errors import any_of
from .expression import Message, parse, parse_message
from .shape import Choice, Dim, Shape, Tree, shape_text


@dataclass(frozen=True)
class Check:
    """The error names `argument` and says `says` unless `that` holds."""

    argument: str
    that: ast.expr
    says: Message
    is_of_sizes: bool = False
    """Whether `that` says that sizes are equal, which may be symbols."""


@dataclass(frozen=True)
class Bind:
    """The dim is what `value` is; if it `may_be_bound` already, only where it is not."""

    dim: str
    value: ast.expr
    may_be_bound: bool


@dataclass(frozen=True)
class Branch:
    """The steps of the first case whose condition holds."""

    cases: tuple[tuple[ast.expr, tuple[Step, ...]], ...]


Step = Check | Bind | Branch


@cache
def steps(op: Op) -> tuple[Step, ...]:
    """Return the checks of an op's arguments, none of which reads a value."""
    early = [rule for rule in op.rules if op.is_of_scalars(rule)]
    late = [rule for rule in op.rules if not op.is_of_scalars(rule)]
    lowering = _Lowering(op)
    return (
        *of_rules(op, early),
        *(step for tensor in op.tensors for step in lowering.tensor(tensor)),
        *of_rules(op, late),
    )


def of_rules(op: Op, rules: Iterable[Rule]) -> Iterator[Step]:
    """Return the checks that rules are; the dims of `steps` must be bound by then.

    A rule holds where an optional argument of which it says something is None, and where a call
    does not have a dim of which it does, unless it says what None means.
    """
    for rule in rules:
        step: Step = Check(rule.of, rule.that, rule.says)
        if rule.when is not None:
            step = Branch(((rule.when, (step,)),))
        for name in sorted(assumed(op, rule)):
            step = Branch(((parse(f"{name} is not None"), (step,)),))
        yield step


@cache
def assumed(op: Op, rule: Rule) -> frozenset[str]:
    """Return the optional arguments and the dims that a rule assumes to be there."""
    used = set(rule.names)
    arguments = {each.name for each in op.arguments}
    for part in rule.says:
        # An argument that is None is printed so.
        if not isinstance(part, str) and not (isinstance(part, ast.Name) and part.id in arguments):
            used |= expression.names(part)
    return frozenset(name for name in used if name in op.may_be_none) - rule.asked


def selected(selector: str, value: Any) -> str:
    """Return the condition that what is chosen by has a value."""
    return f"{selector} == {value!r}"


class _Lowering:
    """Makes the steps of one tensor after the other; knows which dims are bound by then."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self._first = next((each.name for each in op.arguments if each.type == "Tensor"), None)
        # In every variant, and in some.
        self._surely_bound: set[str] = set()
        self._bound: set[str] = set()
        self._binder: dict[str, str] = {}

    def tensor(self, tensor: Tensor) -> Iterator[Step]:
        """The steps of one tensor."""
        yield from self._presence(tensor)
        inner = (*self._kind(tensor), *self._sizes(tensor), *self._strides(tensor))
        if tensor.is_optional:
            yield Branch(((parse(f"{tensor.name} is not None"), inner),))
        else:
            yield from inner
        for shape in tensor.shapes:
            for dim in shape:
                if dim.name is not None and dim.name in self._op.dims:
                    self._bound.add(dim.name)
                    self._binder.setdefault(dim.name, tensor.name)
        self._surely_bound |= self._op.always_has(tensor)

    def _presence(self, tensor: Tensor) -> Iterator[Step]:
        name = tensor.name
        if tensor.only is not None:
            selector = tensor.only.selector
            allowed = any_of(repr(value) for value in tensor.only.of)
            cases = " or ".join(selected(selector, value) for value in tensor.only.of)
            yield _check(
                name,
                f"{name} is None or {cases}",
                f"must be None unless {selector} is {allowed}; {selector} is '{{{selector}}}'",
            )
        if isinstance(tensor.required, Choice):
            selector, ranked = tensor.required.selector, tensor.required.ranked
            for value, why in tensor.required.of.items():
                case = f"a {value}-D {ranked}" if ranked else f"{selector} {value!r}"
                yield _check(
                    name,
                    f"{name} is not None or not ({selected(selector, value)})",
                    f"is required with {case}{': ' if why else ''}{why}, got None",
                )

    def _kind(self, tensor: Tensor) -> Iterator[Step]:
        """Device, rank and dtype."""
        name, first = tensor.name, self._first
        if first is not None and name != first:
            yield _check(
                name,
                f"{name}.device == {first}.device",
                f"must be on the device of '{first}' ({{{first}.device}}), got {{{name}.device}}",
            )
        yield from self._by_case(tensor, tensor.shape, "", self._rank)
        allowed, same = tensor.dtype.allowed, tensor.dtype.same_as
        choices = f"{name}.dtype in ({', '.join(allowed)},)"
        if same is not None:
            is_same = f"{name}.dtype == {same}.dtype"
            others = f" or be {any_of(allowed)}" if allowed else ""
            yield _check(
                name,
                f"{is_same} or {choices}" if allowed else is_same,
                f"must have the dtype of '{same}' ({{{same}.dtype}}){others}, got {{{name}.dtype}}",
            )
        elif allowed:
            yield _check(name, choices, f"must be {any_of(allowed)}, got {{{name}.dtype}}")

    def _sizes(self, tensor: Tensor) -> Iterator[Step]:
        yield from self._by_case(tensor, tensor.shape, "", self._sizes_of_shape)

    def _by_case(self, tensor: Tensor, tree: Tree, reason: str, of_shape: Any) -> Iterator[Step]:
        """The steps of the shape of each variant; `reason` says in messages which it is."""
        if tree is None:
            return
        if not isinstance(tree, Choice):
            yield from of_shape(tensor, tree, reason)
            return
        if tree.ranked == tensor.name and of_shape == self._rank:
            ranks = list(tree.of)
            yield self._rank_check(tensor, ranks, any_of(f"{rank}-D" for rank in ranks))
            return
        cases = []
        for value, each in tree.of.items():
            why = "" if tree.ranked else f" for {tree.selector} {value!r}"
            inner = tuple(self._by_case(tensor, each, why, of_shape))
            cases.append((parse(selected(tree.selector, value)), inner))
        if any(inner for _, inner in cases):
            yield Branch(tuple(cases))

    def _rank(self, tensor: Tensor, shape: Shape, reason: str) -> Iterator[Step]:
        name = tensor.name
        if not shape or not shape[0].is_variadic:
            rank = len(shape)
            words = tensor.words if isinstance(tensor.words, str) else ""
            yield self._rank_check(
                tensor, [rank], f"{rank}-D ({words or shape_text(shape) + reason})"
            )
        elif shape[0].name in self._surely_bound:
            if len(shape) == 1:
                # The check of the sizes says it as a whole.
                return
            rank_text = f"{shape[0].name}.rank + {len(shape) - 1}"
            yield _check(
                name,
                f"{name}.rank == {rank_text}",
                f"must be {{{rank_text}}}-D, got {{{name}.rank}}-D {{{name}.shape}}",
            )
        elif tensor.ranks:
            ranks = list(tensor.ranks)
            yield self._rank_check(tensor, ranks, any_of(f"{rank}-D" for rank in ranks))
        elif len(shape) > 1:
            least = len(shape) - 1
            yield _check(
                name,
                f"{name}.rank >= {least}",
                f"must be at least {least}-D, got {{{name}.rank}}-D {{{name}.shape}}",
            )

    def _rank_check(self, tensor: Tensor, ranks: list[int], text: str) -> Check:
        name = tensor.name
        return _check(
            name,
            " or ".join(f"{name}.rank == {rank}" for rank in ranks),
            f"must be {text}, got {{{name}.rank}}-D {{{name}.shape}}",
        )

    def _sizes_of_shape(self, tensor: Tensor, shape: Shape, reason: str) -> Iterator[Step]:
        inside: set[str] = set()
        from_end = bool(shape) and shape[0].is_variadic
        for index, dim in enumerate(shape):
            if dim.is_variadic:
                yield from self._variadic(tensor, shape, dim)
            else:
                axis = index - len(shape) if from_end else index
                yield from self._size(tensor, axis, dim, inside)
            if dim.name is not None:
                inside.add(dim.name)

    def _variadic(self, tensor: Tensor, shape: Shape, dim: Dim) -> Iterator[Step]:
        name, dims = tensor.name, dim.name
        assert dims is not None
        span = f"{name}.shape" if len(shape) == 1 else f"{name}.shape[:{1 - len(shape)}]"
        is_of_other = True
        if dims not in self._surely_bound:
            may_be_bound = dims in self._bound
            yield Bind(dims, parse(span), may_be_bound)
            if not may_be_bound:
                return
            # The tensor that bound it may be None here.
            is_of_other = False
        if is_of_other and len(shape) == 1 and not isinstance(self._op.words.get(dims), str):
            other = self._binder[dims]
            hint = f"; {tensor.hint}" if tensor.hint else ""
            says = f"must have the shape of '{other}' {{{other}.shape}}, got {{{name}.shape}}{hint}"
        else:
            words = self._op.words_of(tensor, dims)
            says = f"must begin with the sizes {{{dims}}} ({words}), got {{{name}.shape}}"
            if len(shape) == 1:
                says = f"must have the sizes {{{dims}}} ({words}), got {{{name}.shape}}"
        yield _check(name, f"{span} == {dims}", says, is_of_sizes=True)

    def _size(self, tensor: Tensor, axis: int, dim: Dim, inside: set[str]) -> Iterator[Step]:
        size = f"{tensor.name}.shape[{axis}]"
        have = size if dim.divisor == 1 else f"{size} * {dim.divisor}"
        name = dim.name if dim.name in self._op.dims else None
        if name is not None and name not in self._surely_bound | inside:
            may_be_bound = name in self._bound
            yield Bind(name, parse(have), may_be_bound)
            if not may_be_bound:
                return
        want = ast.unparse(dim.expression)
        words = self._op.words_of(tensor, want.replace(" ", ""))
        expected = f"{{{want}}} in dimension {axis} ({words})"
        if dim.divisor > 1:
            part = f"{{({want}) // {dim.divisor}}}"
            expected = f"{part} in dimension {axis} ({{{want}}} / {dim.divisor}: {words})"
        step: Step = _check(
            tensor.name,
            f"{have} == {want}",
            f"must have size {expected}, got {{{size}}} in {{{tensor.name}.shape}}",
            is_of_sizes=True,
        )
        bound = {name, *self._surely_bound, *inside}
        for each in sorted((expression.names(dim.expression) & set(self._op.dims)) - bound):
            step = Branch(((parse(f"{each} is not None"), (step,)),))
        yield step

    def _strides(self, tensor: Tensor) -> Iterator[Step]:
        name = tensor.name
        may_be_0d = any(all(dim.is_variadic for dim in shape) for shape in tensor.shapes or ((),))
        that, text = {
            "any": ("", ""),
            "last": (
                f"{name}.rank == 0 or " * may_be_0d
                + f"{name}.shape[-1] == 1 or {name}.strides[-1] == 1",
                "contiguous in its last dimension",
            ),
            "all": (f"{name}.is_contiguous", "contiguous"),
        }[tensor.strides]
        if that:
            hint = f"; {tensor.hint}" if tensor.hint else ""
            yield _check(
                name,
                that,
                f"must be {text}, got shape {{{name}.shape}} with strides {{{name}.strides}}{hint}",
            )


def _check(argument: str, that: str, says: str, *, is_of_sizes: bool = False) -> Check:
    return Check(argument, parse(that), parse_message(says), is_of_sizes)
