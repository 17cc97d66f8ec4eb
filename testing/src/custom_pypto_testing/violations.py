"""Arguments that break one rule of a contract, or several; the error names the first."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from custom_pypto.core.contracts.evaluation import Evaluation, name_dtype, read_attribute
from custom_pypto_contract.checks import Bind, Check, Step
from custom_pypto_contract.contract import OpContract, Rule, Tensor
from custom_pypto_contract.expression_names import find_tensors_read
from custom_pypto_contract.shape import Choice, resolve

from .sample_generator import (
    COARSE_SIZES,
    SIZES,
    WRONG_SIZES,
    Arguments,
    Candidate,
    DrawingError,
    applies,
    broken_rules,
    describe_rule,
    draw,
    draw_candidate,
    limits_of,
)

_OTHER_DTYPES = (torch.float16, torch.float32, torch.bfloat16, torch.int16, torch.bool)
_WRONG_INTS = (-1, 0, 1, 2, 4, 9)
_WRONG_FLOATS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e30)
_TRIES = 100
_REDRAWS = 10


@dataclass(frozen=True)
class Violation:
    """Arguments, the first rule that they break, and the argument that the error must name."""

    rule: str
    argument: str
    given: Arguments


def violations(op: OpContract, random: Random) -> Iterator[Violation]:
    """Return one violation of every rule for which one is found."""
    for number, rule in enumerate(op.rules):
        if op.reads_only_scalars(rule):
            yield from _of_scalars(op, number, random)
        else:
            yield from _of_sizes(op, number, random)
    for tensor in op.tensors:
        yield from _Breaker(op, tensor, random).all()


def untested_rules(op: OpContract, found: Container[str]) -> Iterator[str]:
    """Describe the rules that no drawn call satisfies, or breaks: `found` are those of violations.

    Raises:
        DrawingError: no call is right.
    """
    random = Random(op.name)
    unsatisfied = set(range(len(op.rules)))
    for _ in range(_TRIES):
        if not unsatisfied:
            break
        candidate, _ = draw_candidate(op, random, Candidate.is_right)
        unsatisfied -= {
            each for each in unsatisfied if applies(op, op.rules[each], candidate.value_of)
        }
    for number, rule in enumerate(op.rules):
        if number in unsatisfied:
            yield f"no drawn call satisfies {describe_rule(rule)}"
        elif f"rule {number}" not in found and not _has_earlier(op, number):
            yield f"no drawn call breaks only {describe_rule(rule)}"


def _has_earlier(op: OpContract, number: int) -> bool:
    return any(_is_alike(op.rules[number], earlier) for earlier in op.rules[:number])


def _of_sizes(op: OpContract, number: int, random: Random) -> Iterator[Violation]:
    """Break a rule over dims: choose other dims for a call that is right, or draw another call."""
    rule = op.rules[number]

    def is_first_broken(candidate: Candidate) -> bool:
        # Asked first, since few candidates break it.
        if next(broken_rules(op, [rule], candidate.value_of), None) is None:
            return False
        broken = broken_rules(op, op.rules, candidate.value_of)
        # Equal rules of other arguments break too; the error names the first.
        return next(broken, None) is rule and all(_is_alike(rule, each) for each in broken)

    reads_dims = not rule.names.isdisjoint(op.dims)
    tries_left = _TRIES

    def breaks_it(candidate: Candidate) -> bool:
        nonlocal tries_left
        if not reads_dims or not candidate.is_right():
            return is_first_broken(candidate)
        if tries_left == 0:
            raise DrawingError(f"{op.name}: no sizes break rule {number}")
        tries_left -= 1
        for _ in range(_REDRAWS):
            candidate.redraw_sizes(rule.names, WRONG_SIZES)
            if is_first_broken(candidate):
                return True
        return False

    if _has_earlier(op, number):
        return

    for sizes in (SIZES, COARSE_SIZES):
        try:
            _, given = draw_candidate(op, random, breaks_it, sizes)
        except DrawingError:
            continue
        yield Violation(f"rule {number}", rule.argument, given)
        return


def _is_alike(one: Rule, other: Rule) -> bool:
    return [*map(ast.dump, one.conditions)] == [*map(ast.dump, other.conditions)]


def _of_scalars(op: OpContract, number: int, random: Random) -> Iterator[Violation]:
    """Break a rule over scalars: change one of them in a valid call."""
    rule = op.rules[number]
    scalars = [each for each in op.rules if op.reads_only_scalars(each)]
    values: dict[str, list[Sequence[Any]]] = {
        "int": [_WRONG_INTS],
        "bool": [(False, True)],
        "str": [_words(op)],
    }
    wanted: list[tuple[str, Sequence[Any]]] = []
    for argument in (each for each in op.arguments if each.name in rule.names):
        # Each special float is a call of its own: a comparison that refuses one may take another.
        values["float"] = [[each] for each in (*_WRONG_FLOATS, *limits_of(op, argument.name))]
        kind = argument.type.removesuffix("?")
        wanted += [(argument.name, choices) for choices in values.get(kind, ())]
    for _ in range(_TRIES):
        if not wanted:
            return
        call = draw(op, random)
        for each in list(wanted):
            name, choices = each
            given = {**call, name: random.choice(choices)}
            broken = [*broken_rules(op, scalars, Evaluation(op, given).value_of)]
            if broken[:1] == [rule] and all(one.argument == rule.argument for one in broken):
                yield Violation(f"rule {number}", rule.argument, given)
                wanted.remove(each)


def _words(op: OpContract) -> list[Any]:
    """The strings that select variants in any choice, and one that selects none."""
    found = [value for values in op.selectors.values() for value in values]
    return [*(value for value in found if isinstance(value, str)), "no such word"]


class _Breaker:
    """Breaks what the contract says of one tensor."""

    def __init__(self, op: OpContract, tensor: Tensor, random: Random) -> None:
        self._op = op
        self._tensor = tensor
        self._name = tensor.name
        self._random = random
        self._latest: Arguments | None = None
        # The tensor of a list that is changed.
        self._index = 0

    def _of(self, given: Arguments) -> torch.Tensor:
        value = given[self._name]
        tensor: torch.Tensor = value[self._index] if self._tensor.is_list else value
        return tensor

    def _with(self, given: Arguments, changed: torch.Tensor) -> Arguments:
        value: Any = changed
        if self._tensor.is_list:
            value = [*given[self._name]]
            value[self._index] = changed
        return {**given, self._name: value}

    @property
    def _named(self) -> str:
        return f"{self._name}[{self._index}]" if self._tensor.is_list else self._name

    def all(self) -> Iterator[Violation]:
        for rule, change, is_of_element in (
            ("ndim", self._ndim, True),
            ("dtype", self._dtype, True),
            ("device", self._device, True),
            ("strides", self._strides, True),
            ("length", self._length, False),
            ("required_when", self._required, False),
            ("allowed_when", self._not_allowed, False),
        ):
            changed = change()
            if changed is not None:
                yield Violation(rule, self._named if is_of_element else self._name, changed)
        for _ in range(3):
            self._latest = None
            yield from self._sizes()

    def _call(
        self, is_wanted: Callable[[Arguments], bool] = lambda given: True
    ) -> Arguments | None:
        """A valid call with the tensor for which `is_wanted` is true; the latest, if that is."""
        for _ in range(_TRIES):
            given = self._latest or draw(self._op, self._random)
            self._latest = None
            value = given[self._name]
            if value is None or (self._tensor.is_list and not value):
                continue
            self._index = self._random.randrange(len(value)) if self._tensor.is_list else 0
            if is_wanted(given):
                self._latest = given
                return given
        return None

    def _ndim(self) -> Arguments | None:
        given = self._call()
        if given is None or not self._tensor.shapes:
            return None
        value = self._of(given)
        is_variadic = any(shape and shape[0].is_variadic for shape in self._tensor.shapes)
        if not is_variadic or self._tensor.ndim:
            return self._with(given, value.new_zeros((*value.shape, 1, 1)))
        if self._name == self._op.tensors[0].name:
            return None
        return self._with(given, value.unsqueeze(0))

    def _dtype(self) -> Arguments | None:
        dtype, given = self._tensor.dtype, self._call()
        if given is None or dtype.are_any:
            return None
        if dtype.same_as is not None:
            same = read_attribute(given[dtype.same_as], "dtype")
            others = [
                each for each in _OTHER_DTYPES if name_dtype(each) not in (*dtype.allowed, same)
            ]
            return self._with(given, self._of(given).to(self._random.choice(others)))
        if self._tensor.is_list:
            return self._with(given, self._of(given).to(torch.int16))
        # Tensors of the same dtype get the wrong one too, so that their rules hold.
        changed = {
            each.name: _converted(given[each.name], torch.int16)
            for each in self._op.tensors
            if given[each.name] is not None
            and (each.name == self._name or each.dtype.same_as == self._name)
        }
        return {**given, **changed}

    def _device(self) -> Arguments | None:
        given = self._call()
        first = self._op.tensor_with_device
        if given is None or first is None or (self._name == first and self._index == 0):
            return None
        return self._with(given, self._of(given).to("meta"))

    def _strides(self) -> Arguments | None:
        if self._tensor.strides == "any":
            return None
        given = self._call(
            lambda each: self._of(each).shape[-1:] > (1,) and self._of(each).numel() > 0
        )
        if given is None:
            return None
        value = self._of(given)
        apart = value.new_zeros((*value.shape, 2))[..., 0]
        return self._with(given, apart.copy_(value))

    def _length(self) -> Arguments | None:
        given = self._call() if self._tensor.is_list else None
        if given is None:
            return None
        changed = {**given, self._name: [*given[self._name], self._of(given)]}
        try:
            Evaluation(self._op, changed).run_checks()
        except RuntimeError as error:
            # Another list may be refused, if this one is the first of this length.
            if str(error).startswith(f"{self._op.name}: argument '{self._name}' "):
                return changed
        return None

    def _required(self) -> Arguments | None:
        if not isinstance(self._tensor.required_when, Choice):
            return None
        given = self._call(
            lambda each: (
                resolve(self._tensor.required_when, Evaluation(self._op, each).value_of) is not None
            )
        )
        return None if given is None else {**given, self._name: None}

    def _not_allowed(self) -> Arguments | None:
        allowed = self._tensor.allowed_when
        for _ in range(_TRIES if allowed is not None else 0):
            given = draw(self._op, self._random)
            if resolve(allowed, Evaluation(self._op, given).value_of) is None:
                one = torch.zeros(1, 1, dtype=torch.int32, device="cpu")
                return {**given, self._name: [one] if self._tensor.is_list else one}
        return None

    def _sizes(self) -> Iterator[Violation]:
        given = self._call()
        if given is None:
            return
        value = self._of(given)
        watch = _Watch(self._op, given, self._named, value.dim())
        watch.run_checks()
        for axis in sorted(watch.axes):
            shape = list(value.shape)
            shape[axis] += 1
            changed = self._with(given, value.new_zeros(shape))
            yield Violation(f"size {axis}", self._named, changed)


def _converted(value: Any, dtype: torch.dtype) -> Any:
    return [each.to(dtype) for each in value] if isinstance(value, list) else value.to(dtype)


class _Watch(Evaluation):
    """Notes which sizes of one tensor are compared, because they bind no dim."""

    def __init__(self, op: OpContract, given: Arguments, name: str, ndim: int) -> None:
        super().__init__(op, given)
        self.axes: set[int] = set()
        self._watched = name
        self._ndim = ndim
        self._binders: dict[str, set[str]] = {}

    def run(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, Bind) and step.dim not in self.dims:
                self._binders[step.dim] = {*map(self.show, find_tensors_read([step.value]))}
            super().run([step])

    def _check(self, step: Check) -> None:
        if step.is_of_sizes and self.show(step.argument) == self._watched:
            assert isinstance(step.condition, ast.Compare)
            [expected] = step.condition.comparators
            # A scalar in a size has no binder.
            name = expected.id if isinstance(expected, ast.Name) else ""
            is_own = self._watched in self._binders.get(name, ())
            if not is_own:
                self._watch(step.condition.left)
        super()._check(step)

    def _watch(self, sizes: ast.expr) -> None:
        for node in ast.walk(sizes):
            match node:
                case ast.Subscript(_, ast.Slice(upper=upper)):
                    end = None if upper is None else self.value(upper)
                    self.axes.update(range(self._ndim)[:end])
                case ast.Subscript(_, index):
                    self.axes.add(self.value(index) % self._ndim)
                case ast.Attribute(_, "shape") if node is sizes:
                    self.axes.update(range(self._ndim))
