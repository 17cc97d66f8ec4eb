"""The checks of a contract in their order, which the C++ header and the fake kernel both follow.

A step checks a condition, binds a dim to a size, or chooses further steps. The generator of C++
prints the expressions of a step, and the fake kernel evaluates them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from . import nodes
from .contract import OpContract, Rule, Tensor
from .errors import any_of
from .expression import Message
from .expression_names import names_in
from .nodes import attribute, element, is_given, leading_sizes, message
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
    """The steps for each tensor of a list, of which there are `count`; ``i`` is its index."""

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
    return {
        each.value.id
        for node in rule.conditions
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and each.attr == "dtype"
        and isinstance(each.value, ast.Name)
        and op.is_list(each.value.id)
    }


def has_elements(tensors: str) -> ast.expr:
    """Return the condition that a list is not empty."""
    return nodes.compare(attribute(tensors, "length"), ast.GtE(), nodes.constant(1))


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
            always = self._op.dims_in(tensor.shape)
            self._surely_bound |= always & self._op.dims_of_elements.keys()

    def _of_list(self, tensor: Tensor) -> Iterator[Step]:
        own = tensor.name
        if own == self._first:
            # Torch finds no kernel for a call without tensors.
            text = message("must have at least 1 tensor, got 0")
            yield Check(own, has_elements(own), text)
        if tensor.length is not None:
            yield from self._count(tensor, tensor.length)
        inner = tuple(self._of_one(tensor))
        if inner:
            yield Each(attribute(own, "length"), inner)

    def _of_one(self, tensor: Tensor) -> Iterator[Step]:
        yield from self._kind(tensor)
        yield from self._by_case(tensor, tensor.shape, "", self._sizes_of_shape)
        yield from self._strides(tensor)

    def _count(self, tensor: Tensor, dim: Dim) -> Iterator[Step]:
        have, want = attribute(tensor.name, "length"), dim.expression
        if dim.name in self._op.dims and dim.name not in self._surely_bound:
            may_be_bound = dim.name in self._bound
            yield Bind(dim.text, have, may_be_bound)
            if not may_be_bound:
                return
        what = self._op.describe_dim(tensor, dim.text)
        expected = (f" ({what})",) if names_in(want) else ()
        step: Step = Check(
            tensor.name,
            nodes.equal(have, want),
            message("must have ", want, " tensors", *expected, ", got ", have),
            is_of_sizes=True,
        )
        bound = {dim.name, *self._surely_bound}
        for each in sorted((names_in(want) & set(self._op.dims)) - bound):
            step = _only_if(is_given(each), step)
        yield step

    def _presence(self, tensor: Tensor) -> Iterator[Step]:
        allowed, required = tensor.allowed_when, tensor.required_when
        if allowed is not None:
            selector = allowed.selector
            values = any_of(repr(value) for value in allowed.trees)
            yield Check(
                tensor.name,
                nodes.disjunction(
                    nodes.is_none(tensor.name), *map(allowed.is_selected, allowed.trees)
                ),
                message(
                    f"must be None unless {selector} is {values}; {selector} is '",
                    allowed.selector_node,
                    "'",
                ),
            )
        if isinstance(required, Choice):
            for value, why in required.trees.items():
                case = f"{required.selector} {value!r}"
                if required.tensor:
                    case = f"a {value}-D {required.tensor}"
                yield Check(
                    tensor.name,
                    nodes.disjunction(
                        is_given(tensor.name), nodes.negation(required.is_selected(value))
                    ),
                    message(f"is required with {case}{': ' if why else ''}{why}, got None"),
                )

    def _kind(self, tensor: Tensor) -> Iterator[Step]:
        """Device, number of dims and dtype."""
        own, first = tensor.element, self._first
        if first is not None and own != first:
            device, expected = attribute(own, "device"), attribute(first, "device")
            of = f"{first}[0]" if self._op.is_list(first) else first
            yield Check(
                own,
                nodes.equal(device, expected),
                message(f"must be on the device of '{of}' (", expected, "), got ", device),
            )
        yield from self._by_case(tensor, tensor.shape, "", self._ndim)
        yield from self._dtype(tensor)
        if tensor.is_list and not tensor.dtype.are_any:
            dtype, first_dtype = attribute(own, "dtype"), attribute(tensor.name, "dtype")
            of_first = f"must have the dtype of '{tensor.name}[0]' ("
            text = message(of_first, first_dtype, "), got ", dtype)
            yield Check(own, nodes.equal(dtype, first_dtype), text)

    def _dtype(self, tensor: Tensor) -> Iterator[Step]:
        dtype = attribute(tensor.element, "dtype")
        allowed, same = tensor.dtype.allowed, tensor.dtype.same_as
        conditions = []
        expected: list[str | ast.expr] = ["must "]
        if same is not None:
            is_list = self._op.is_list(same)
            if is_list:
                conditions.append(nodes.negation(has_elements(same)))
            conditions.append(nodes.equal(dtype, attribute(same, "dtype")))
            of = f"{same}[0]" if is_list else same
            expected += [f"have the dtype of '{of}' (", attribute(same, "dtype"), ")"]
        if allowed:
            conditions.append(nodes.one_of(dtype, allowed))
            expected.append(f"{' or ' if same is not None else ''}be {any_of(allowed)}")
        if conditions:
            yield Check(
                tensor.element, nodes.disjunction(*conditions), message(*expected, ", got ", dtype)
            )

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
        own = tensor.element
        found = message(attribute(own, "ndim"), "-D ", attribute(own, "shape"))
        if not shape or not shape[0].is_variadic:
            what = tensor.description or shape_text(shape) + reason
            yield self._ndim_check(tensor, [len(shape)], f"{len(shape)}-D ({what})")
        elif shape[0].name in self._surely_bound:
            if len(shape) == 1:
                # The check of the sizes covers it.
                return
            variadic = attribute(ast.unparse(shape[0].expression), "ndim")
            expected = ast.BinOp(variadic, ast.Add(), nodes.constant(len(shape) - 1))
            yield Check(
                own,
                nodes.equal(attribute(own, "ndim"), expected),
                message("must be ", expected, "-D, got ", *found),
            )
        elif tensor.ndim:
            yield self._ndim_check(tensor, list(tensor.ndim))
        elif len(shape) > 1:
            least = len(shape) - 1
            yield Check(
                own,
                nodes.compare(attribute(own, "ndim"), ast.GtE(), nodes.constant(least)),
                message(f"must be at least {least}-D, got ", *found),
            )

    def _ndim_check(self, tensor: Tensor, ndims: list[int], expected: str = "") -> Check:
        ndim = attribute(tensor.element, "ndim")
        expected = expected or any_of(f"{each}-D" for each in ndims)
        return Check(
            tensor.element,
            nodes.disjunction(*(nodes.equal(ndim, nodes.constant(each)) for each in ndims)),
            message(f"must be {expected}, got ", ndim, "-D ", attribute(tensor.element, "shape")),
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
        own, dims, bound = tensor.element, dim.name, dim.expression
        assert dims is not None
        is_whole = len(shape) == 1
        span = leading_sizes(own, len(shape) - 1)
        if dims not in self._surely_bound:
            may_be_bound = self._may_be_bound(tensor, dim)
            yield Bind(ast.unparse(bound), span, may_be_bound)
            if not may_be_bound:
                return
        found = attribute(own, "shape")
        binder, of_binder = self._binder[dims]
        # If the tensor that bound the dim may be None, the message must not name it.
        if dims in self._surely_bound and is_whole and dims not in self._op.descriptions:
            name, others = nodes.quoted(binder), len(of_binder) - 1
            words = ("must have the shape of ", *name, " ", attribute(binder, "shape"), ", got ")
            if others:
                part = "dimension" if others == 1 else f"{others} dimensions"
                without = f" without its last {part}), got "
                words = ("must have the sizes ", bound, " (the shape of ", *name, without)
            text = message(*words, found, f"; {tensor.hint}" if tensor.hint else "")
        else:
            what = self._op.describe_dim(tensor, dims)
            verb = "have" if is_whole else "begin with"
            text = message(f"must {verb} the sizes ", bound, f" ({what}), got ", found)
        yield Check(own, nodes.equal(span, bound), text, is_of_sizes=True)

    def _may_be_bound(self, tensor: Tensor, dim: Dim) -> bool:
        """Whether a dim that is not bound surely may be: by another tensor, or the list's first."""
        return dim.name in self._bound or (tensor.is_list and not dim.is_of_element)

    def _size(self, tensor: Tensor, axis: int, dim: Dim, inside: set[str]) -> Iterator[Step]:
        size = element(tensor.element, "shape", axis)
        have = nodes.product(size, dim.divisor)
        of_dim = dim.name if dim.name in self._op.dims else None
        if of_dim is not None and of_dim not in self._surely_bound | inside:
            may_be_bound = self._may_be_bound(tensor, dim)
            yield Bind(ast.unparse(dim.expression), have, may_be_bound)
            if not may_be_bound:
                return
        want = dim.expression
        what = self._op.describe_dim(tensor, ast.unparse(want).replace(" ", ""))
        expected: tuple[str | ast.expr, ...] = (want, f" in dimension {axis} ({what})")
        if dim.divisor > 1:
            part = ast.BinOp(want, ast.FloorDiv(), nodes.constant(dim.divisor))
            expected = (part, f" in dimension {axis} (", want, f" / {dim.divisor}: {what})")
        step: Step = Check(
            tensor.element,
            nodes.equal(have, want),
            message(
                "must have size ",
                *expected,
                ", got ",
                size,
                " in ",
                attribute(tensor.element, "shape"),
            ),
            is_of_sizes=True,
        )
        bound = {of_dim, *self._surely_bound, *inside}
        for each in sorted((names_in(want) & set(self._op.dims)) - bound):
            step = _only_if(is_given(each), step)
        yield step

    def _strides(self, tensor: Tensor) -> Iterator[Step]:
        own = tensor.element
        if tensor.strides == "any":
            return
        what = "contiguous"
        condition: ast.expr = attribute(own, "is_contiguous")
        if tensor.strides == "last_dim_contiguous":
            what = "contiguous in its last dimension"
            conditions = [
                nodes.equal(element(own, "shape", -1), nodes.constant(1)),
                nodes.equal(element(own, "strides", -1), nodes.constant(1)),
            ]
            if any(all(dim.is_variadic for dim in shape) for shape in tensor.shapes or ((),)):
                is_0d = nodes.equal(attribute(own, "ndim"), nodes.constant(0))
                conditions.insert(0, is_0d)
            condition = nodes.disjunction(*conditions)
        yield Check(
            own,
            condition,
            message(
                f"must be {what}, got shape ",
                attribute(own, "shape"),
                " with strides ",
                attribute(own, "strides"),
                f"; {tensor.hint}" if tensor.hint else "",
            ),
        )
