"""Generates random arguments that a contract allows."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import torch
from custom_pypto.core.call_text import name_dtype
from custom_pypto_contract import checks, expression
from custom_pypto_contract.contract import OpContract, Rule, Tensor
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.evaluate import evaluate
from custom_pypto_contract.expression_names import names_in
from custom_pypto_contract.nodes import INDEX
from custom_pypto_contract.schema import Argument
from custom_pypto_contract.shape import Choice, Dim, Shape, parse_shape, resolve
from torch.utils._pytree import tree_map

from .layouts import Layout, contiguous, draw_layout

SIZES = (1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 16, 16, 32, 0)
"""The sizes of drawn dims: the smallest ones, and multiples of others."""
COARSE_SIZES = (16, 16, 32, 48)
"""The same for dims in blocks of 16."""
WRONG_SIZES = (0, 1, 2, 3, 5, 16, 17, 48, 64, 100, 128, 2**17, 2**31)
"""The sizes of dims that break a rule."""

LENGTHS = (2, 3, 1, 3)
"""The lengths of drawn lists."""
WRONG_LENGTHS = (0, 1, 2, 3, 9, 33, 65, 129, 257)
"""The lengths of lists that break a rule."""

_TRIES = 3000
_BLAMED = 200
_CHOICES = 20
"""How often an argument is chosen for a rule to hold."""
_SIZES_OF_ONE = 4
"""How often the sizes of a candidate are drawn."""
NO_CALL = (ValueError, ZeroDivisionError, IndexError, KeyError)
"""What evaluating a rule, or making a tensor, raises for sizes that no call has."""
_MOST_DIMS = 3
_WITH_ZEROS = 0.2
"""How often the first row of a tensor is zero."""
_NO_LIMIT = 2**31
"""A default this large means no limit; other values are rarely valid."""
_ANY_DTYPES = ("float32", "int64", "bool")
_MOST_ELEMENTS = 2**20
"""The elements of a larger tensor are all at one address; no op writes to it."""
_LARGEST = 2**60

Arguments = dict[str, Any]


class DrawingError(LookupError):
    """No valid arguments were found."""


class NoCallError(DrawingError):
    """None of many random calls is allowed; the text names the rules that they break."""

    def __init__(self, op: OpContract) -> None:
        """Find the broken rules when the text is read: a search for rare calls never reads it."""
        super().__init__(op)
        self._op = op

    def __str__(self) -> str:
        return f"{self._op.name}: none of {_TRIES} random calls is right; {_blame(self._op)}"


class Candidate:
    """The choices before tensors are made: variants, presence, dtypes, sizes."""

    def __init__(
        self,
        op: OpContract,
        random: Random,
        sizes: Sequence[int] = SIZES,
        kept: Iterable[Rule] | None = None,
    ) -> None:
        """Choose at random; the result may break a rule of the contract.

        The rules `kept`, all of `rules_of_choices` by default, are seldom broken.
        """
        self.op = op
        self._random = random
        tensors = {each.name for each in op.tensors}
        self.scalars = {
            each.name: _scalar(op, each, random)
            for each in op.arguments
            if each.name not in tensors
        }
        # By the name of the length, or of the list if its length has no name.
        self.lengths: dict[str, int] = {}
        for each in (each for each in op.tensors if each.is_list):
            name = (each.length and each.length.name) or each.name
            may_be_empty = each.name != op.tensor_with_device
            lengths = (*LENGTHS, 0) if may_be_empty else LENGTHS
            self.lengths.setdefault(name, random.choice(lengths))
        self.ndims: dict[str, int] = {}
        self.dims: dict[str, Any] = {}
        self.shapes: dict[str, Shape | None] = {}
        # The number of dims of each variadic dim.
        self._counts: dict[str, int] = {}
        self._dtypes: dict[str, str] = {}
        self._layouts: dict[str, Layout] = {}
        self._index = 0
        kept = rules_of_choices(op) if kept is None else kept
        for rule in filter(op.reads_only_scalars, kept):
            self._keep(rule)
        for tensor in op.tensors:
            self._choose(tensor)
        for rule in kept:
            self._keep(rule)
        self.draw_sizes(sizes)

    def lay_plainly(self) -> None:
        """Let no tensor have gaps: sizes alone then determine the strides, also other sizes."""
        names = (each.name for each in self.op.tensors)
        self._layouts = {name: contiguous(self.ndims.get(name, 0)) for name in names}

    def draw_sizes(self, sizes: Sequence[int], *, are_distinct: bool = False) -> None:
        """Choose new dims; all different if they `are_distinct`."""
        left = list(sizes)

        def one() -> int:
            size = self._random.choice(left)
            if are_distinct:
                left.remove(size)
            return size

        self.dims = {}
        for tensor in self.op.tensors:
            if self.shapes[tensor.name] is None:
                continue
            if tensor.length is not None and tensor.length.name in self.lengths:
                self.dims[tensor.length.name] = self.lengths[tensor.length.name]
            for dim in self.shapes[tensor.name] or ():
                name = dim.name
                if name is None or name in self.dims or name not in self.op.dims:
                    continue

                def size(dim: Dim = dim, name: str = name) -> Any:
                    count = self._counts.get(name, 0)
                    return [one() for _ in range(count)] if dim.is_variadic else one()

                self.dims[name] = (
                    [size() for _ in range(self.count_of(tensor))] if dim.is_of_element else size()
                )

    def redraw_sizes(self, dims: Container[str], sizes: Sequence[int]) -> None:
        """Choose new sizes for each of `dims` that the call has."""
        if lengths := [each for each in self.lengths if each in dims]:
            self.lengths |= {each: self._random.choice(WRONG_LENGTHS) for each in lengths}
            # All dims get one size: one of many sizes would break another rule.
            self.draw_sizes((self._random.choice(SIZES),))
        for name in (each for each in self.dims if each in dims and each not in self.lengths):
            self.dims[name] = tree_map(lambda _: self._random.choice(sizes), self.dims[name])

    def count_of(self, tensor: Tensor) -> int:
        """Return how many tensors an argument is."""
        if not tensor.is_list:
            return 1
        if tensor.length is None:
            return self.lengths[tensor.name]
        return int(evaluate(tensor.length.expression, self.value_of))

    def is_right(self) -> bool:
        """Return whether every rule holds."""
        return next(broken_rules(self.op, self.op.rules, self.value_of), None) is None

    def arguments(self) -> Arguments:
        """Return arguments that are as chosen.

        Raises:
            ValueError: no tensor has such sizes, or no integers fit into it.
        """
        generator = torch.Generator().manual_seed(self._random.randrange(2**31))
        given: Arguments = dict(self.scalars)
        for tensor in self.op.tensors:
            if self.shapes[tensor.name] is None:
                given[tensor.name] = None
                continue
            made = [
                self._tensor(tensor, index, sizes, generator)
                for index, sizes in enumerate(self.sizes_of_all(tensor))
            ]
            given[tensor.name] = made if tensor.is_list else made[0]
        return {each.name: given[each.name] for each in self.op.arguments}

    def _tensor(
        self, tensor: Tensor, index: int, sizes: list[int], generator: torch.Generator
    ) -> torch.Tensor:
        dtype = getattr(torch, self.dtype_of(tensor.name))
        values = resolve(tensor.values, self.value_of)
        count = math.prod(sizes)
        if count > _MOST_ELEMENTS:
            if count > _LARGEST or self.op.argument(tensor.name).is_mutable:
                raise ValueError("no tensor is as large")
            return torch.zeros((), dtype=dtype, device="cpu").expand(sizes)
        if values is not None:
            made = self._integers(values, count, generator).reshape(sizes)
        elif dtype.is_floating_point:
            made = torch.randn(sizes, generator=generator, device="cpu")
            if count and self._random.random() < _WITH_ZEROS:
                # Norms and scales divide by what such a row gives.
                made.view(-1, sizes[-1] if sizes else 1)[0] = 0
        else:
            made = torch.randint(-3, 4, sizes, generator=generator, device="cpu")
        layout = self._layout_of(tensor.name)
        if index and layout != contiguous(len(sizes)):
            # Each tensor of a list may have another layout.
            drawn = draw_layout(tensor.strides, len(sizes), self._random)
            layout = self._layouts.setdefault(f"{tensor.name}[{index}]", drawn)
        return layout.copy(made.to(dtype))

    def sizes_of_all(self, tensor: Tensor) -> list[list[int]]:
        """Return the sizes of each tensor of an argument: of none, of one, or of each in a list."""
        is_given = self.shapes[tensor.name] is not None
        count = self.count_of(tensor) if is_given else 0
        return [self.sizes_of(tensor.name, index) for index in range(count)]

    def sizes_of(self, tensor: str, index: int = 0) -> list[int]:
        """Return the sizes of a tensor, or of the one at `index` of a list."""
        self._index = index
        sizes: list[int] = []
        for dim in self.shapes[tensor] or ():
            if any(self.value_of(name) is None for name in names_in(dim.expression)):
                raise ValueError(f"{dim.text} is of what this call does not have")
            value = evaluate(dim.expression, self.value_of)
            if dim.is_variadic:
                sizes.extend(value)
            elif value % dim.divisor or value < 0:
                raise ValueError(f"{dim.text} is no size")
            else:
                sizes.append(value // dim.divisor)
        return sizes

    def dtype_of(self, tensor: str) -> str:
        """Return the dtype of a tensor; chosen when it is first needed, as most candidates fail."""
        if tensor not in self._dtypes:
            [spec] = (each.dtype for each in self.op.tensors if each.name == tensor)
            choices = list(spec.allowed)
            if spec.same_as is not None:
                choices.append(self.dtype_of(spec.same_as))
            self._dtypes[tensor] = self._random.choice(choices or list(_ANY_DTYPES))
        return self._dtypes[tensor]

    def value_of(self, name: str) -> Any:
        """Return the value of a dim, a scalar, a dtype or ``tensor.attribute``."""
        head, _, attribute = name.partition(".")
        if name == INDEX and self.op.dims_of_elements:
            return self._index
        if attribute == "length":
            return self.count_of(next(each for each in self.op.tensors if each.name == head))
        if attribute == "ndim":
            return self.ndims[head]
        if attribute == "dtype":
            return self.dtype_of(head)
        if attribute == "device":
            return torch.device("cpu")
        if attribute == "shape":
            return self.sizes_of(head)
        if attribute:
            return self._read_strides(head, attribute)
        if head in self.shapes:
            return None if self.shapes[head] is None else self
        if head in self.op.dims:
            return self.dims.get(head)
        value = self.scalars.get(head, head)
        return name_dtype(value) if isinstance(value, torch.dtype) else value

    def _layout_of(self, tensor: str) -> Layout:
        """Return where a tensor's elements lie; half of the candidates have no gaps at all."""
        if not self._layouts:
            is_plain = self._random.random() < 0.5
            for each in self.op.tensors:
                ndim = self.ndims.get(each.name, 0)
                plain = is_plain or self._random.random() < 0.3
                self._layouts[each.name] = (
                    contiguous(ndim) if plain else draw_layout(each.strides, ndim, self._random)
                )
        return self._layouts[tensor]

    def _read_strides(self, tensor: str, attribute: str) -> Any:
        """Return `strides`, or `is_contiguous`, without making the tensor, which may be huge."""
        sizes = self.sizes_of(tensor)
        strides = self._layout_of(tensor).strides(sizes)
        if attribute == "strides":
            return strides
        assert attribute == "is_contiguous", attribute
        pairs = zip(sizes, strides, contiguous(len(sizes)).strides(sizes), strict=True)
        return 0 in sizes or all(size == 1 or have == want for size, have, want in pairs)

    def _keep(self, rule: Rule) -> None:
        """Choose the argument of a rule again while it breaks the rule."""
        for _ in range(_CHOICES):
            if next(broken_rules(self.op, [rule], self.value_of), None) is None:
                return
            argument = self.op.argument(rule.argument)
            if argument.name in self.scalars:
                self.scalars[argument.name] = _scalar(self.op, argument, self._random)
            for tensor in (each for each in self.op.tensors if each.name in self.shapes):
                # A scalar may decide which tensors are given.
                if argument.name in (tensor.name, *self.scalars):
                    self._choose(tensor)

    def _choose(self, tensor: Tensor) -> None:
        name = tensor.name
        if isinstance(tensor.shape, Choice) and tensor.shape.tensor == name:
            self.ndims[name] = self._random.choice(list(tensor.shape.trees))
        is_given = (
            not tensor.is_optional
            or self._random.random() < 0.5
            or resolve(tensor.required_when, self.value_of) is not None
        )
        if tensor.allowed_when is not None and resolve(tensor.allowed_when, self.value_of) is None:
            is_given = False
        shape = resolve(tensor.shape, self.value_of)
        if tensor.shape is None:
            sizes = (self._random.choice(SIZES) for _ in range(_least_ndim(self.op, name)))
            shape = parse_shape(" ".join(map(str, sizes)))
        self.shapes[name] = shape if is_given else None
        if is_given and shape is not None:
            self.ndims[name] = self._choose_ndim(tensor, shape)

    def _choose_ndim(self, tensor: Tensor, shape: Shape) -> int:
        if not shape or not shape[0].is_variadic:
            return len(shape)
        most = max(_MOST_DIMS, _least_ndim(self.op, tensor.name))
        ndims = tensor.ndim or range(len(shape) - 1, most + 1)
        first = shape[0].name or ""
        if first not in self._counts:
            self._counts[first] = self._random.choice(ndims) - len(shape) + 1
        return self._counts[first] + len(shape) - 1

    def _limit(self, text: str) -> int:
        """A limit of values; 0 in a wrong call that lacks the tensor of a dim."""
        try:
            return evaluate(expression.parse(text), self.value_of) or 0
        except TypeError:
            return 0

    def _integers(self, values: str, count: int, generator: torch.Generator) -> torch.Tensor:
        kind, _, rest = values.partition(" ")
        if kind == "prefix_sums":
            first, _, last = rest.rpartition("..")
            ends = [self._limit(each) for each in (first, last) if each]
            inner = count - len(ends)
            if inner < 0 and ends[-1] > 0:
                raise ValueError("no room for prefix sums")
            ends += (self._random.randint(0, ends[-1]) for _ in range(inner))
            return torch.tensor(sorted(ends)[:count], device="cpu")
        low, high = map(self._limit, (rest if kind == "distinct" else values).split(".."))
        if low > high and count:
            raise ValueError("no value fits")
        if kind == "distinct":
            return torch.tensor(self._random.sample(range(low, high + 1), count), device="cpu")
        return torch.randint(low, max(low, high) + 1, (count,), generator=generator, device="cpu")


def broken_rules(
    op: OpContract, rules: Iterable[Rule], value_of: Callable[[str], Any]
) -> Iterator[Rule]:
    """Return the broken ones of some rules; `value_of` is as `Candidate.value_of`."""
    for rule in rules:
        if any(
            applies(op, rule, each) and evaluate(rule.check, each) is False
            for each in _for_each_element(op, rule, value_of)
        ):
            yield rule


def _for_each_element(
    op: OpContract, rule: Rule, value_of: Callable[[str], Any]
) -> Iterator[Callable[[str], Any]]:
    """Yield `value_of`, or for a rule of a list's tensors one for each index."""
    length = checks.length_of(op, rule)
    if length is None:
        yield value_of
        return
    if any(value_of(name) is None for name in names_in(length)):
        return
    for index in range(evaluate(length, value_of)):

        def value_at(name: str, index: int = index) -> Any:
            return index if name == INDEX else value_of(name)

        yield value_at


def draw(op: OpContract, random: Random) -> Arguments:
    """Return arguments that break no rule.

    Raises:
        DrawingError: none was found.
    """
    return draw_candidate(op, random, Candidate.is_right)[1]


def draw_candidate(
    op: OpContract,
    random: Random,
    wanted: Callable[[Candidate], bool],
    sizes: Sequence[int] = SIZES,
    kept: Sequence[Rule] | None = None,
) -> tuple[Candidate, Arguments]:
    """Return the first `wanted` candidate with its arguments; `kept` is as for `Candidate`.

    Raises:
        DrawingError: none was found.
    """
    for number in range(_TRIES):
        if number % _SIZES_OF_ONE == 0:
            candidate = Candidate(op, random, sizes, kept)
        else:
            candidate.draw_sizes(sizes)
        try:
            if wanted(candidate):
                return candidate, candidate.arguments()
        except NO_CALL:
            continue
    raise NoCallError(op)


def describe_rule(rule: Rule) -> str:
    """Return a rule as ops.toml has it, but for the names of constants."""
    when = "" if rule.when is None else f" when {ast.unparse(rule.when)!r}"
    return f"the rule {ast.unparse(rule.check)!r} of {rule.argument!r}{when}"


def applies(op: OpContract, rule: Rule, value_of: Callable[[str], Any]) -> bool:
    """Return whether a call must keep a rule; `value_of` is as `Candidate.value_of`."""
    if any(value_of(name) is None for name in checks.find_assumed(op, rule)):
        return False
    if any(value_of(f"{name}.length") == 0 for name in checks.lists_with_dtype(op, rule)):
        return False
    return rule.when is None or evaluate(rule.when, value_of) is True


def _blame(op: OpContract) -> str:
    """Return why random calls are wrong: the rules that all or most of them break."""
    random = Random(op.name)
    broken, errors = Counter[str](), Counter[str]()
    for _ in range(_BLAMED):
        candidate = Candidate(op, random)
        try:
            broken.update(map(describe_rule, broken_rules(op, op.rules, candidate.value_of)))
            candidate.arguments()
        except NO_CALL as error:
            errors[str(error)] += 1
    if not broken:
        named = "; ".join(text for text, _ in errors.most_common(3))
        return f"their tensors cannot be made: {named}"
    drawn = f"(drawn: sizes of at most {max(SIZES)}, scalars such as {candidate.scalars})"
    if never := [text for text, count in broken.items() if count == _BLAMED]:
        return f"none satisfies {' and '.join(never)}: perhaps no call can {drawn}"
    named = ", ".join(text for text, _ in broken.most_common(3))
    return f"most break {named}: perhaps no call can {drawn}"


def _scalar(op: OpContract, argument: Argument, random: Random) -> Any:
    if argument.is_optional and random.random() < 0.5:
        return None
    is_list = argument.type.removesuffix("?").endswith("[]")
    return [] if is_list else random.choice(_values(op, argument.name))


def constants_of(op: OpContract, name: str) -> list[Any]:
    """Return what a scalar's own rules compare it with, and its values that select shapes."""
    found = dict.fromkeys(op.selectors.get(name, ()))
    for node in (node for rule in _own_rules(op, name) for node in ast.walk(rule.check)):
        match node:
            case ast.Constant(value) if value is not None:
                found[value] = None
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
                found[-value] = None
            case ast.Name(dtype) if dtype in DTYPES:
                found[getattr(torch, dtype)] = None
    return [*found]


def choices_of(op: OpContract) -> list[tuple[str, Any]]:
    """Return (name, value) for each string and each listed value of the scalars."""
    return [
        (each.name, value)
        for each in op.arguments
        for value in (*op.values_of(each.name), *constants_of(op, each.name))
        if value is not None and (isinstance(value, str) or value in op.values_of(each.name))
    ]


def _own_rules(op: OpContract, name: str) -> list[Rule]:
    return [rule for rule in op.rules if name in rule.names <= {name, *DTYPES}]


def limits_of(op: OpContract, name: str) -> list[float]:
    """Return the numbers that rules compare a scalar with, and some near them."""
    limits = (float(each) for each in constants_of(op, name) if isinstance(each, int | float))
    return [limit + step for limit in limits for step in (0.0, 0.125, -0.125, 0.5, -0.5)]


@cache
def rules_of_choices(op: OpContract) -> list[Rule]:
    """Return the rules that read scalars and which tensors are given, nothing else."""
    names = {each.name for each in op.arguments}
    reads = (ast.Attribute, ast.Subscript)

    def is_of_choices(rule: Rule) -> bool:
        nodes = (node for each in rule.conditions for node in ast.walk(each))
        return rule.names <= names and not any(isinstance(node, reads) for node in nodes)

    return [*filter(is_of_choices, op.rules)]


@cache
def _values(op: OpContract, name: str) -> list[Any]:
    """Return values for a scalar that its own rules allow; the usual ones, if they allow none."""
    argument, limits, constants = op.argument(name), limits_of(op, name), constants_of(op, name)
    default, kind = argument.default_value, argument.type.removesuffix("?")
    numbers = [int(each) for each in limits if each.is_integer()]
    low = [each for each in numbers if each < 100]
    near = [each + step for each in numbers for step in range(-9, 10)]
    small = default if isinstance(default, int) and default < 100 else 1
    is_unlimited = isinstance(default, int) and default >= _NO_LIMIT
    usual: dict[str, list[Any]] = {
        "str": [default or "", *constants],
        "bool": [False, True],
        "float": [default or 0.5, 0.125, *limits],
        "int": [default, default, default, 5] if is_unlimited else [small, 0, 3, 5, 7, 20, *low],
        "ScalarType": [torch.float16, torch.float32, *constants],
        "Device": [torch.device("cpu")],
    }
    if kind not in usual:
        raise DrawingError(f"{op.name}: no {kind} can be drawn for {name!r}")
    values = [*usual[kind], *(each for each in op.values_of(name) if each is not None)]

    def is_allowed(value: Any) -> bool:
        shown = name_dtype(value) if isinstance(value, torch.dtype) else value
        known = {name: shown, **{each: each for each in DTYPES}}
        return not any(broken_rules(op, _own_rules(op, name), known.__getitem__))

    return [*filter(is_allowed, values)] or [*filter(is_allowed, near)] or values


@cache
def _least_ndim(op: OpContract, tensor: str) -> int:
    """Return how many dims the rules demand of a tensor, beside its shape."""
    least = 0
    for rule in op.rules:
        match rule.check:
            case ast.Compare(
                ast.Attribute(ast.Name(of), "ndim"),
                [ast.GtE() | ast.Eq()],
                [ast.Constant(int(ndim))],
            ) if of == tensor:
                least = max(least, ndim)
    return least
