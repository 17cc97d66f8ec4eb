"""The checks of a contract in their order, which the C++ header and the fake kernel both follow.

A step checks a condition, binds a dim to a size, or chooses further steps. The generator of C++
prints the expressions of a step, and the fake kernel evaluates them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from .contract import OpContract, Rule, Tensor
from .errors import any_of
from .expression import Message, parse, parse_message
from .names import names_in
from .shape import Choice, Dim, Shape, Tree, shape_text


@dataclass(frozen=True)
class Check:
    """Unless `condition` holds, the error names `argument` and says `message`."""

    argument: str
    condition: ast.expr
    message: Message
    is_of_sizes: bool = False
    """Whether the condition compares sizes, which may be symbols."""


@dataclass(frozen=True)
class Bind:
    """The dim gets the value; if it `may_be_bound` already, only where it is not."""

    dim: str
    value: ast.expr
    may_be_bound: bool


@dataclass(frozen=True)
class Branch:
    """The steps of the first case whose condition holds."""

    cases: tuple[tuple[ast.expr, tuple[Step, ...]], ...]


Step = Check | Bind | Branch
ShapeSteps = Callable[[Tensor, Shape, str], "Iterator[Step]"]


@cache
def steps(op: OpContract) -> tuple[Step, ...]:
    """Return the checks of an op's arguments. None reads the values of a tensor."""
    early = [rule for rule in op.rules if op.reads_only_scalars(rule)]
    late = [rule for rule in op.rules if not op.reads_only_scalars(rule)]
    lowering = _Lowering(op)
    return (
        *rule_steps(op, early),
        *(step for tensor in op.tensors for step in lowering.tensor(tensor)),
        *rule_steps(op, late),
    )


def rule_steps(op: OpContract, rules: Iterable[Rule]) -> Iterator[Step]:
    """Return the checks of rules, which need the dims of `steps`.

    A rule is skipped where an optional argument or a dim that it reads is None, unless the rule
    tests that for None itself.
    """
    for rule in rules:
        step: Step = Check(rule.argument, rule.check, rule.message)
        if rule.when is not None:
            step = _only_if(rule.when, step)
        for each in sorted(find_assumed(op, rule)):
            step = _only_if(_is_given(each), step)
        yield step


@cache
def find_assumed(op: OpContract, rule: Rule) -> frozenset[str]:
    """Return the optional arguments and the dims without which a rule is skipped."""
    used = set(rule.names)
    arguments = {each.name for each in op.arguments}
    for part in rule.message:
        # An argument alone is printed, also if it is None.
        if not isinstance(part, str) and not (isinstance(part, ast.Name) and part.id in arguments):
            used |= names_in(part)
    return frozenset(each for each in used if each in op.may_be_none) - rule.tested_for_none


def _only_if(condition: ast.expr, step: Step) -> Branch:
    return Branch(((condition, (step,)),))


def _is_given(name: str) -> ast.expr:
    return parse(f"{name} is not None")


def _check(argument: str, condition: str, message: str, *, is_of_sizes: bool = False) -> Check:
    return Check(argument, parse(condition), parse_message(message), is_of_sizes)


class _Lowering:
    """Makes the steps of one tensor after the other, and knows which dims are bound by then."""

    def __init__(self, op: OpContract) -> None:
        self._op = op
        self._first = next((each.name for each in op.arguments if each.type == "Tensor"), None)
        # In every variant, and in some.
        self._surely_bound: set[str] = set()
        self._bound: set[str] = set()
        self._binder: dict[str, tuple[str, Shape]] = {}

    def tensor(self, tensor: Tensor) -> Iterator[Step]:
        """The steps of one tensor."""
        yield from self._presence(tensor)
        inner = (*self._kind(tensor), *self._sizes(tensor), *self._strides(tensor))
        if tensor.is_optional:
            yield Branch(((_is_given(tensor.name), inner),))
        else:
            yield from inner
        for shape in tensor.shapes:
            for dim in shape:
                if dim.name is not None and dim.name in self._op.dims:
                    self._bound.add(dim.name)
                    self._binder.setdefault(dim.name, (tensor.name, shape))
        self._surely_bound |= self._op.dims_always_in(tensor)

    def _presence(self, tensor: Tensor) -> Iterator[Step]:
        own, allowed, required = tensor.name, tensor.allowed_when, tensor.required_when
        # Values may have braces, so their messages are no texts to parse.
        if allowed is not None:
            selector = allowed.selector
            values = any_of(repr(value) for value in allowed.trees)
            yield Check(
                own,
                parse(" or ".join([f"{own} is None", *map(allowed.is_selected, allowed.trees)])),
                (
                    f"must be None unless {selector} is {values}; {selector} is '",
                    parse(selector),
                    "'",
                ),
            )
        if isinstance(required, Choice):
            for value, why in required.trees.items():
                case = f"{required.selector} {value!r}"
                if required.tensor:
                    case = f"a {value}-D {required.tensor}"
                yield Check(
                    own,
                    parse(f"{own} is not None or not {required.is_selected(value)}"),
                    (f"is required with {case}{': ' if why else ''}{why}, got None",),
                )

    def _kind(self, tensor: Tensor) -> Iterator[Step]:
        """Device, number of dims and dtype."""
        own, first = tensor.name, self._first
        if first is not None and own != first:
            yield _check(
                own,
                f"{own}.device == {first}.device",
                f"must be on the device of '{first}' ({{{first}.device}}), got {{{own}.device}}",
            )
        yield from self._by_case(tensor, tensor.shape, "", self._ndim)
        yield from self._dtype(tensor)

    def _dtype(self, tensor: Tensor) -> Iterator[Step]:
        dtype = f"{tensor.name}.dtype"
        allowed, same = tensor.dtype.allowed, tensor.dtype.same_as
        conditions, expected = [], []
        if same is not None:
            conditions.append(f"{dtype} == {same}.dtype")
            expected.append(f"have the dtype of '{same}' ({{{same}.dtype}})")
        if allowed:
            conditions.append(f"{dtype} in ({', '.join(allowed)},)")
            expected.append(f"be {any_of(allowed)}")
        if conditions:
            yield _check(
                tensor.name,
                " or ".join(conditions),
                f"must {' or '.join(expected)}, got {{{dtype}}}",
            )

    def _sizes(self, tensor: Tensor) -> Iterator[Step]:
        yield from self._by_case(tensor, tensor.shape, "", self._sizes_of_shape)

    def _by_case(
        self, tensor: Tensor, tree: Tree, reason: str, of_shape: ShapeSteps
    ) -> Iterator[Step]:
        """The steps of the shape of each variant; in messages `reason` says which one it is."""
        if tree is None:
            return
        if not isinstance(tree, Choice):
            yield from of_shape(tensor, tree, reason)
            return
        if tree.tensor == tensor.name and of_shape == self._ndim:
            yield self._ndim_check(tensor, list(tree.trees))
            return
        cases = []
        for value, each in tree.trees.items():
            why = "" if tree.tensor else f" for {tree.selector} {value!r}"
            inner = tuple(self._by_case(tensor, each, why, of_shape))
            cases.append((parse(tree.is_selected(value)), inner))
        if any(inner for _, inner in cases):
            yield Branch(tuple(cases))

    def _ndim(self, tensor: Tensor, shape: Shape, reason: str) -> Iterator[Step]:
        own = tensor.name
        found = f"got {{{own}.ndim}}-D {{{own}.shape}}"
        if not shape or not shape[0].is_variadic:
            what = tensor.description or shape_text(shape) + reason
            yield self._ndim_check(tensor, [len(shape)], f"{len(shape)}-D ({what})")
        elif shape[0].name in self._surely_bound:
            if len(shape) == 1:
                # The check of the sizes covers it.
                return
            expected = f"{shape[0].name}.ndim + {len(shape) - 1}"
            yield _check(own, f"{own}.ndim == {expected}", f"must be {{{expected}}}-D, {found}")
        elif tensor.ndim:
            yield self._ndim_check(tensor, list(tensor.ndim))
        elif len(shape) > 1:
            least = len(shape) - 1
            yield _check(own, f"{own}.ndim >= {least}", f"must be at least {least}-D, {found}")

    def _ndim_check(self, tensor: Tensor, ndims: list[int], expected: str = "") -> Check:
        own = tensor.name
        expected = expected or any_of(f"{each}-D" for each in ndims)
        return Check(
            own,
            parse(" or ".join(f"{own}.ndim == {each}" for each in ndims)),
            # As above, a value in `expected` may have braces.
            (f"must be {expected}, got ", *parse_message(f"{{{own}.ndim}}-D {{{own}.shape}}")),
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
        own, dims = tensor.name, dim.name
        assert dims is not None
        is_whole = len(shape) == 1
        span = f"{own}.shape" if is_whole else f"{own}.shape[:{1 - len(shape)}]"
        if dims not in self._surely_bound:
            may_be_bound = dims in self._bound
            yield Bind(dims, parse(span), may_be_bound)
            if not may_be_bound:
                return
        hint = ""
        binder, of_binder = self._binder[dims]
        # If the tensor that bound the dim may be None, the message must not name it.
        if dims in self._surely_bound and is_whole and dims not in self._op.descriptions:
            hint = f"; {tensor.hint}" if tensor.hint else ""
            others = len(of_binder) - 1
            expected = f"have the shape of '{binder}' {{{binder}.shape}}"
            if others:
                part = "dimension" if others == 1 else f"{others} dimensions"
                what = f"the shape of '{binder}' without its last {part}"
                expected = f"have the sizes {{{dims}}} ({what})"
        else:
            what = self._op.describe_dim(tensor, dims)
            expected = f"{'have' if is_whole else 'begin with'} the sizes {{{dims}}} ({what})"
        yield _check(
            own,
            f"{span} == {dims}",
            f"must {expected}, got {{{own}.shape}}{hint}",
            is_of_sizes=True,
        )

    def _size(self, tensor: Tensor, axis: int, dim: Dim, inside: set[str]) -> Iterator[Step]:
        own, divisor = tensor.name, dim.divisor
        size = f"{own}.shape[{axis}]"
        have = size if divisor == 1 else f"{size} * {divisor}"
        of_dim = dim.name if dim.name in self._op.dims else None
        if of_dim is not None and of_dim not in self._surely_bound | inside:
            may_be_bound = of_dim in self._bound
            yield Bind(of_dim, parse(have), may_be_bound)
            if not may_be_bound:
                return
        want = ast.unparse(dim.expression)
        what = self._op.describe_dim(tensor, want.replace(" ", ""))
        expected = f"{{{want}}} in dimension {axis} ({what})"
        if divisor > 1:
            expected = (
                f"{{({want}) // {divisor}}} in dimension {axis} ({{{want}}} / {divisor}: {what})"
            )
        step: Step = _check(
            own,
            f"{have} == {want}",
            f"must have size {expected}, got {{{size}}} in {{{own}.shape}}",
            is_of_sizes=True,
        )
        bound = {of_dim, *self._surely_bound, *inside}
        for each in sorted((names_in(dim.expression) & set(self._op.dims)) - bound):
            step = _only_if(_is_given(each), step)
        yield step

    def _strides(self, tensor: Tensor) -> Iterator[Step]:
        own = tensor.name
        if tensor.strides == "any":
            return
        what, condition = "contiguous", f"{own}.is_contiguous"
        if tensor.strides == "last_dim_contiguous":
            what = "contiguous in its last dimension"
            condition = f"{own}.shape[-1] == 1 or {own}.strides[-1] == 1"
            if any(all(dim.is_variadic for dim in shape) for shape in tensor.shapes or ((),)):
                condition = f"{own}.ndim == 0 or {condition}"
        hint = f"; {tensor.hint}" if tensor.hint else ""
        yield _check(
            own,
            condition,
            f"must be {what}, got shape {{{own}.shape}} with strides {{{own}.strides}}{hint}",
        )
