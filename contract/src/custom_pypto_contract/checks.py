"""The checks of a contract in their order, which the C++ header and the fake kernel both follow.

A step checks a condition, binds a dim to a size, or chooses further steps. The generator of C++
prints the expressions of a step, and the fake kernel evaluates them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cache

from . import nodes
from .contract import OpContract, Rule, Tensor
from .errors import any_of
from .expression import Message
from .expression_names import find_attributes, names_in
from .nodes import Name, expression, is_given, message
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
    """The dim gets the value; if it `may_be_bound` already, only where it is not.

    The dim ``M[i]`` of a list has a value for each tensor, and gets them in order.
    """

    dim: str
    value: ast.expr
    may_be_bound: bool


@dataclass(frozen=True)
class Branch:
    """The steps of the first case whose condition holds."""

    cases: tuple[tuple[ast.expr, tuple[Step, ...]], ...]


@dataclass(frozen=True)
class Each:
    """The steps for each of the `count` tensors of a list; ``i`` is the tensor's index."""

    count: ast.expr
    steps: tuple[Step, ...]


Step = Check | Bind | Branch | Each
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
        length = length_of(op, rule)
        named = rule.argument
        if length is not None and op.argument(named).is_tensor_list:
            named = nodes.element_of(named)
        step: Step = Check(named, rule.check, rule.message)
        if rule.when is not None:
            step = _only_if(rule.when, step)
        if length is not None:
            step = Each(length, (step,))
        for each in sorted(lists_with_dtype(op, rule)):
            step = _only_if(has_elements(each), step)
        for each in sorted(find_assumed(op, rule)):
            step = _only_if(is_given(each), step)
        yield step


@cache
def length_of(op: OpContract, rule: Rule) -> ast.expr | None:
    """Return the length of the lists if a rule holds for each of their tensors; else None."""
    if nodes.INDEX not in rule.names:
        return None
    lengths = (length for dim, length in op.dims_of_elements.items() if dim in rule.names)
    return next((length.expression for length in lengths), None)


@cache
def lists_with_dtype(op: OpContract, rule: Rule) -> set[str]:
    """Return the lists whose dtype a rule reads: where one is empty, the rule is skipped."""
    read = find_attributes(rule.conditions)
    return {name for name, attribute in read if attribute == "dtype" and op.is_list(name)}


@cache
def has_elements(tensors: str) -> ast.expr:
    """Return the condition that a list is not empty."""
    return expression("xs.length >= 1", xs=tensors)


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


def _check(
    own: str, condition: str, text: str, *texts: str, is_of_sizes: bool = False, **names: Name
) -> Check:
    """Return the check of `own`, which is ``x`` in both; the rest is as for `nodes.message`."""
    names = {"x": own, **names}
    return Check(own, expression(condition, **names), message(text, *texts, **names), is_of_sizes)


def _only_if(condition: ast.expr, step: Step) -> Branch:
    return Branch(((condition, (step,)),))


class _Lowering:
    """Makes the steps of one tensor after the other, and knows which dims are bound by then."""

    def __init__(self, op: OpContract) -> None:
        self._op = op
        self._first = op.tensor_with_device
        # In every variant, and in some.
        self._surely_bound: set[str] = set()
        self._bound: set[str] = set()
        self._binder: dict[str, tuple[str, Shape]] = {}

    def tensor(self, tensor: Tensor) -> Iterator[Step]:
        yield from self._presence(tensor)
        inner = tuple(self._of_list(tensor) if tensor.is_list else self._of_one(tensor))
        if tensor.is_optional:
            yield Branch(((is_given(tensor.name), inner),))
        else:
            yield from inner
        for shape in ((tensor.length,) if tensor.length else (), *tensor.shapes):
            for dim in shape:
                if dim.name is not None and dim.name in self._op.dims:
                    self._bound.add(dim.name)
                    self._binder.setdefault(dim.name, (tensor.element, shape))
        self._surely_bound |= self._op.dims_always_in(tensor)
        if tensor.is_list and not tensor.is_optional:
            # Lists with such a dim have the same length.
            self._surely_bound |= self._op.dims_in(tensor.shape) & self._op.dims_of_elements.keys()

    def _of_list(self, tensor: Tensor) -> Iterator[Step]:
        own = tensor.name
        if own == self._first:
            # Torch finds no kernel for a call without tensors.
            yield Check(own, has_elements(own), message("must have at least 1 tensor, got 0"))
        if tensor.length is not None:
            yield from self._count(tensor, tensor.length)
        inner = tuple(self._of_one(tensor))
        if inner:
            yield Each(expression("xs.length", xs=own), inner)

    def _of_one(self, tensor: Tensor) -> Iterator[Step]:
        yield from self._kind(tensor)
        yield from self._by_case(tensor, tensor.shape, "", self._sizes_of_shape)
        yield from self._strides(tensor)

    def _count(self, tensor: Tensor, dim: Dim) -> Iterator[Step]:
        if dim.name in self._op.dims and dim.name not in self._surely_bound:
            may_be_bound = dim.name in self._bound
            yield from self._bind(tensor.name, dim, "x.length", "at least {} tensors", may_be_bound)
            if not may_be_bound:
                return
        own, want = tensor.name, dim.expression
        what = self._op.describe_dim(tensor, dim.text)
        rule = " ({0})" if names_in(want) else ""
        text = f"must have {{want}} tensors{rule}, got {{x.length}}"
        step = _check(own, "x.length == want", text, what, is_of_sizes=True, want=want)
        yield self._of_sizes(step, dim, {dim.name})

    def _of_sizes(self, step: Step, dim: Dim, bound: Set[str | None]) -> Step:
        """Return the step for calls that have the other dims in `dim`; all calls have `bound`."""
        used = names_in(dim.expression) & self._op.dims.keys()
        for each in sorted(used - bound - self._surely_bound):
            step = _only_if(is_given(each), step)
        return step

    def _presence(self, tensor: Tensor) -> Iterator[Step]:
        own, allowed, required = tensor.name, tensor.allowed_when, tensor.required_when
        if allowed is not None:
            is_none = expression("x is None", x=own)
            yield Check(
                own,
                ast.BoolOp(ast.Or(), [is_none, *map(allowed.is_selected, allowed.trees)]),
                message(
                    "must be None unless {0} is {1}; {0} is '{selector}'",
                    allowed.selector,
                    any_of(map(repr, allowed.trees)),
                    selector=allowed.selector_node,
                ),
            )
        if isinstance(required, Choice):
            for value, why in required.trees.items():
                case = f"{required.selector} {value!r}"
                if required.tensor:
                    case = f"a {value}-D {required.tensor}"
                condition, is_chosen = "x is not None or not is_chosen", required.is_selected(value)
                text = "is required with {0}{1}, got None"
                why = f": {why}" if why else ""
                yield _check(own, condition, text, case, why, is_chosen=is_chosen)

    def _kind(self, tensor: Tensor) -> Iterator[Step]:
        """Device, number of dims and dtype."""
        own, first = tensor.element, self._first
        if first is not None and own != first:
            of = f"{first}[0]" if self._op.is_list(first) else first
            text = f"must be on the device of '{of}' ({{y.device}}), got {{x.device}}"
            yield _check(own, "x.device == y.device", text, y=first)
        yield from self._by_case(tensor, tensor.shape, "", self._ndim)
        yield from self._dtype(tensor)
        if tensor.is_list and not tensor.dtype.are_any:
            text = f"must have the dtype of '{tensor.name}[0]' ({{xs.dtype}}), got {{x.dtype}}"
            yield _check(own, "x.dtype == xs.dtype", text, xs=tensor.name)

    def _dtype(self, tensor: Tensor) -> Iterator[Step]:
        allowed, same = tensor.dtype.allowed, tensor.dtype.same_as
        conditions, expected = [], []
        if same is not None:
            element = same
            if self._op.is_list(same):
                element = f"{same}[0]"
                conditions.append("not y.length >= 1")
            conditions.append("x.dtype == y.dtype")
            expected.append(f"have the dtype of '{element}' ({{y.dtype}})")
        if allowed:
            conditions.append(f"x.dtype in ({', '.join(allowed)},)")
            expected.append(f"be {any_of(allowed)}")
        if conditions:
            text = f"must {' or '.join(expected)}, got {{x.dtype}}"
            yield _check(tensor.element, " or ".join(conditions), text, y=same or "")

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
            cases.append((tree.is_selected(value), inner))
        if any(inner for _, inner in cases):
            yield Branch(tuple(cases))

    def _ndim(self, tensor: Tensor, shape: Shape, reason: str) -> Iterator[Step]:
        own, fixed = tensor.element, len(shape) - 1
        got = "got {x.ndim}-D {x.shape}"
        if not shape or not shape[0].is_variadic:
            what = tensor.description or shape_text(shape) + reason
            yield self._ndim_check(tensor, [len(shape)], f"{len(shape)}-D ({what})")
        elif shape[0].name in self._surely_bound:
            # With no other dim, the check of the sizes covers it.
            if fixed:
                text = f"must be {{sizes.ndim + {fixed}}}-D, {got}"
                sizes = ast.unparse(shape[0].expression)
                yield _check(own, f"x.ndim == sizes.ndim + {fixed}", text, sizes=sizes)
        elif tensor.ndim:
            yield self._ndim_check(tensor, list(tensor.ndim))
        elif fixed:
            yield _check(own, f"x.ndim >= {fixed}", f"must be at least {fixed}-D, {got}")

    def _ndim_check(self, tensor: Tensor, ndims: list[int], expected: str = "") -> Check:
        condition = " or ".join(f"x.ndim == {each}" for each in ndims)
        expected = expected or any_of(f"{each}-D" for each in ndims)
        return _check(tensor.element, condition, "must be {0}, got {x.ndim}-D {x.shape}", expected)

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
        own, dims, others = tensor.element, dim.name, len(shape) - 1
        assert dims is not None
        sizes = f"x.shape[:-{others}]" if others else "x.shape"
        if dims not in self._surely_bound:
            may_be_bound = self._may_be_bound(tensor, dim)
            yield Bind(ast.unparse(dim.expression), expression(sizes, x=own), may_be_bound)
            if not may_be_bound:
                return
        binder, of_binder = self._binder[dims]
        # If the tensor that bound the dim may be None, the message must not name it.
        if dims in self._surely_bound and not others and dims not in self._op.descriptions:
            quoted, detail = f"'{nodes.list_of(binder)}'", f"; {tensor.hint}" if tensor.hint else ""
            if nodes.list_of(binder) != binder:
                quoted = f"'{nodes.list_of(binder)}[{{{nodes.INDEX}}}]'"
            text = f"must have the shape of {quoted} {{y.shape}}, got {{x.shape}}{{0}}"
            if less := len(of_binder) - 1:
                part = "dimension" if less == 1 else f"{less} dimensions"
                text = f"must have the sizes {{bound}} (the shape of {quoted} without its last"
                text += f" {part}), got {{x.shape}}{{0}}"
        else:
            verb, detail = "begin with" if others else "have", self._op.describe_dim(tensor, dims)
            text = f"must {verb} the sizes {{bound}} ({{0}}), got {{x.shape}}"
        condition, bound = f"{sizes} == bound", dim.expression
        yield _check(own, condition, text, detail, is_of_sizes=True, y=binder, bound=bound)

    def _may_be_bound(self, tensor: Tensor, dim: Dim) -> bool:
        """Whether another tensor, or the first tensor of the list, may have bound the dim."""
        return dim.name in self._bound or (tensor.is_list and not dim.is_of_element)

    def _size(self, tensor: Tensor, axis: int, dim: Dim, inside: set[str]) -> Iterator[Step]:
        own, want, size = tensor.element, dim.expression, f"x.shape[{axis}]"
        have = size if dim.divisor == 1 else f"{size} * {dim.divisor}"
        of_dim = dim.name if dim.name in self._op.dims else None
        if of_dim is not None and of_dim not in self._surely_bound | inside:
            may_be_bound = self._may_be_bound(tensor, dim)
            what = f"a size of at least {{}} in dimension {axis}"
            yield from self._bind(own, dim, have, what, may_be_bound)
            if not may_be_bound:
                return
        what = self._op.describe_dim(tensor, ast.unparse(want).replace(" ", ""))
        expected = f"{{want}} in dimension {axis} ({{0}})"
        if dim.divisor > 1:
            part = f"want // {dim.divisor}"
            expected = f"{{{part}}} in dimension {axis} ({{want}} / {dim.divisor}: {{0}})"
        text = f"must have size {expected}, got {{{size}}} in {{x.shape}}"
        step = _check(own, f"{have} == want", text, what, is_of_sizes=True, want=want)
        yield self._of_sizes(step, dim, {of_dim, *inside})

    def _bind(self, own: str, dim: Dim, have: str, what: str, may_be_bound: bool) -> Iterator[Step]:
        """Bind the name in a dim to a size, less what the dim adds; `what` says of which size."""
        name = ast.unparse(dim.expression)
        if dim.offset:
            text = f"must have {what.format(dim.offset)} ({dim.text}), got {{{have}}}"
            yield _check(own, f"{have} >= {dim.offset}", text)
            name, have = dim.name or "", f"{have} - {dim.offset}"
        yield Bind(name, expression(have, x=own), may_be_bound)

    def _strides(self, tensor: Tensor) -> Iterator[Step]:
        own = tensor.element
        if tensor.strides == "any":
            return
        what, condition = "contiguous", "x.is_contiguous"
        if tensor.strides == "last_dim_contiguous":
            what = "contiguous in its last dimension"
            condition = "x.shape[-1] == 1 or x.strides[-1] == 1"
            if any(all(dim.is_variadic for dim in shape) for shape in tensor.shapes or ((),)):
                condition = f"x.ndim == 0 or {condition}"
        text = f"must be {what}, got shape {{x.shape}} with strides {{x.strides}}{{0}}"
        yield _check(own, condition, text, f"; {tensor.hint}" if tensor.hint else "")
