"""Random arguments that a contract allows."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from random import Random
from typing import Any

import torch
from custom_pypto.core.contracts.evaluation import name_dtype
from custom_pypto_contract import checks, expression
from custom_pypto_contract.attributes import ATTRIBUTES
from custom_pypto_contract.contract import OpContract, Rule, Tensor
from custom_pypto_contract.evaluate import evaluate
from custom_pypto_contract.names import names_in
from custom_pypto_contract.schema import Argument
from custom_pypto_contract.shape import Choice, Shape, parse_shape, resolve

SIZES = (1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 16, 16, 32, 0)
"""The sizes of drawn dims: the smallest ones, and multiples of others."""
COARSE_SIZES = (16, 16, 32, 48)
"""The same for dims in blocks of 16."""
WRONG_SIZES = (0, 1, 2, 3, 5, 16, 17, 48, 64, 100, 128, 2**17, 2**31)
"""The sizes of dims that break a rule."""

_TRIES = 3000
_BLAMED = 200
_NO_DRAFT = (ValueError, ZeroDivisionError, IndexError, KeyError)
"""What evaluating a rule, or making a tensor, raises for sizes that no call has."""
_MOST_DIMS = 3
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
        """Blame rules when the text is asked for: whoever looks for rare calls does not."""
        super().__init__(op)
        self._op = op

    def __str__(self) -> str:
        """Return the text."""
        return f"{self._op.name}: none of {_TRIES} random calls is right; {_blame(self._op)}"


class Draft:
    """The choices before tensors are made: variants, presence, dtypes, sizes."""

    def __init__(self, op: OpContract, random: Random, sizes: Sequence[int] = SIZES) -> None:
        """Choose at random; the result may break a rule of the contract."""
        self.op = op
        self._random = random
        self.scalars = {
            each.name: _scalar(op, each, random) for each in op.arguments if not each.is_tensor
        }
        self.ndims: dict[str, int] = {}
        self.dims: dict[str, Any] = {}
        self.shapes: dict[str, Shape | None] = {}
        # The number of dims of each variadic dim.
        self._counts: dict[str, int] = {}
        self._dtypes: dict[str, str] = {}
        for tensor in op.tensors:
            self._choose(tensor)
        self.draw_sizes(sizes)

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
            for dim in self.shapes[tensor.name] or ():
                if dim.name is None or dim.name not in self.op.dims or dim.name in self.dims:
                    continue
                if dim.is_variadic:
                    self.dims[dim.name] = [one() for _ in range(self._counts[dim.name])]
                else:
                    self.dims[dim.name] = one()

    def redraw_sizes(self, dims: Container[str], sizes: Sequence[int]) -> None:
        """Choose new sizes for those of some dims that the call has."""
        for name in (each for each in self.dims if each in dims):
            old = self.dims[name]
            chosen = [self._random.choice(sizes) for _ in (old if isinstance(old, list) else [old])]
            self.dims[name] = chosen if isinstance(old, list) else chosen[0]

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
            sizes = self.sizes_of(tensor.name)
            dtype = getattr(torch, self.dtype_of(tensor.name))
            values = resolve(tensor.values, self.value_of)
            count = math.prod(sizes)
            if count > _MOST_ELEMENTS:
                if count > _LARGEST or self.op.argument(tensor.name).is_mutable:
                    raise ValueError("no tensor is as large")
                given[tensor.name] = torch.zeros((), dtype=dtype, device="cpu").expand(sizes)
                continue
            if values is not None:
                made = torch.tensor(self._integers(values, count), device="cpu").reshape(sizes)
            elif dtype.is_floating_point:
                made = torch.randn(sizes, generator=generator, device="cpu")
            else:
                made = torch.randint(-3, 4, sizes, generator=generator, device="cpu")
            given[tensor.name] = made.to(dtype)
        return {each.name: given[each.name] for each in self.op.arguments}

    def sizes_of(self, tensor: str) -> list[int]:
        """Return the sizes of a tensor."""
        sizes: list[int] = []
        for dim in self.shapes[tensor] or ():
            if any(self.value_of(name) is None for name in names_in(dim.expression)):
                raise ValueError(f"{dim.text} is of what this call does not have")
            value = self._value(dim.expression)
            if dim.is_variadic:
                sizes.extend(value)
            elif value % dim.divisor or value < 0:
                raise ValueError(f"{dim.text} is no size")
            else:
                sizes.append(value // dim.divisor)
        return sizes

    def dtype_of(self, tensor: str) -> str:
        """Return the dtype of a tensor; chosen when it is first asked for, as most drafts fail."""
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
        if attribute == "ndim":
            return self.ndims[head]
        if attribute == "dtype":
            return self.dtype_of(head)
        if attribute == "device":
            return torch.device("cpu")
        if attribute:
            # Tensors are made contiguous.
            return ATTRIBUTES[attribute].get(torch.empty(self.sizes_of(head), device="meta"))
        if head in self.shapes:
            return None if self.shapes[head] is None else self
        if head in self.op.dims:
            return self.dims.get(head)
        value = self.scalars.get(head, head)
        return name_dtype(value) if isinstance(value, torch.dtype) else value

    def _value(self, node: ast.expr) -> Any:
        return evaluate(node, self.value_of)

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

    def _integers(self, values: str, count: int) -> list[int]:
        kind, _, rest = values.partition(" ")
        if kind == "prefix_sums":
            total = self._value(expression.parse(rest))
            if count == 0 and total > 0:
                raise ValueError("no room for prefix sums")
            ends = sorted(self._random.randint(0, total) for _ in range(count - 1))
            return [*ends, total][:count]
        text = rest if kind == "distinct" else values
        low, high = (self._value(expression.parse(each)) for each in text.split(".."))
        if low > high and count:
            raise ValueError("no value fits")
        if kind == "distinct":
            return self._random.sample(range(low, high + 1), count)
        return [self._random.randint(low, high) for _ in range(count)]


def broken_rules(
    op: OpContract, rules: Iterable[Rule], value_of: Callable[[str], Any]
) -> Iterator[Rule]:
    """Return those of some rules that are broken; `value_of` is as that of `Draft`."""
    for rule in rules:
        if applies(op, rule, value_of) and evaluate(rule.check, value_of) is False:
            yield rule


def draw(
    op: OpContract, random: Random, wanted: Callable[[Draft], bool] | None = None
) -> Arguments:
    """Return arguments that break no rule; with `wanted`, of drafts for which it is true.

    Raises:
        DrawingError: none was found.
    """
    return drafted(op, random, lambda each: each.is_right() and (not wanted or wanted(each)))[1]


def drafted(
    op: OpContract, random: Random, wanted: Callable[[Draft], bool], sizes: Sequence[int] = SIZES
) -> tuple[Draft, Arguments]:
    """Return the first draft that is `wanted`, with its arguments.

    Raises:
        DrawingError: none was found.
    """
    for _ in range(_TRIES):
        draft = Draft(op, random, sizes)
        try:
            if wanted(draft):
                return draft, draft.arguments()
        except _NO_DRAFT:
            continue
    raise NoCallError(op)


def describe_rule(rule: Rule) -> str:
    """Return a rule as ops.toml has it, but for the names of constants."""
    when = "" if rule.when is None else f" when {ast.unparse(rule.when)!r}"
    return f"the rule {ast.unparse(rule.check)!r} of {rule.argument!r}{when}"


def applies(op: OpContract, rule: Rule, value_of: Callable[[str], Any]) -> bool:
    """Return whether a call must keep a rule; `value_of` is as that of `Draft`."""
    if any(value_of(name) is None for name in checks.find_assumed(op, rule)):
        return False
    return rule.when is None or evaluate(rule.when, value_of) is True


def _blame(op: OpContract) -> str:
    """Return why random calls are wrong: the rules that none of them satisfies, or most break."""
    random = Random(op.name)
    kept, broken = Counter[int](), Counter[int]()
    errors = Counter[str]()
    for _ in range(_BLAMED):
        draft = Draft(op, random)
        for number, rule in enumerate(op.rules):
            try:
                if applies(op, rule, draft.value_of):
                    holds = evaluate(rule.check, draft.value_of) is not False
                    (kept if holds else broken)[number] += 1
            except _NO_DRAFT:
                broken[number] += 1
        try:
            draft.arguments()
        except _NO_DRAFT as error:
            errors[str(error)] += 1
    never = [number for number in broken if number not in kept]
    if never:
        named = " and ".join(describe_rule(op.rules[number]) for number in sorted(never))
        return f"none satisfies {named}: no call may (the sizes drawn are at most {max(SIZES)})"
    if broken:
        named = ", ".join(describe_rule(op.rules[each]) for each, _ in broken.most_common(3))
        return f"most break {named}: no call may satisfy all"
    named = "; ".join(text for text, _ in errors.most_common(3))
    return f"their tensors cannot be made: {named}"


def _scalar(op: OpContract, argument: Argument, random: Random) -> Any:
    default = argument.default_value
    if argument.is_optional and random.random() < 0.5:
        return None
    match argument.type.removesuffix("?"):
        case "str":
            return random.choice(op.selectors.get(argument.name) or [default or ""])
        case "bool":
            return random.random() < 0.5
        case "float":
            return random.choice((default or 0.5, 0.125))
        case "int":
            named = _named_integers(op, argument.name)
            if named and random.random() < 0.75:
                return random.choice(named)
            if isinstance(default, int) and default >= _NO_LIMIT:
                return random.choice((default, default, default, 5))
            small = default if isinstance(default, int) and default < 100 else 1
            return random.choice((small, 0, 3, 5, 7, 20))
        case "ScalarType":
            return random.choice((torch.float16, torch.float32))
        case "Device":
            return torch.device("cpu")
    if argument.type.removesuffix("?").endswith("[]"):
        return []
    raise DrawingError(f"{op.name}: no {argument.type} can be drawn for {argument.name!r}")


def _named_integers(op: OpContract, name: str) -> list[int]:
    """Return the allowed integers of a scalar, if a rule lists them."""
    for rule in op.rules:
        match rule.check:
            case ast.Compare(ast.Name(of), [ast.Eq()], [ast.Constant(int(value))]) if of == name:
                return [value]
            case ast.Compare(ast.Name(of), [ast.In()], [ast.Tuple(values)]) if of == name:
                of_tuple = [each.value for each in values if isinstance(each, ast.Constant)]
                return [value for value in of_tuple if type(value) is int]
    return []


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
