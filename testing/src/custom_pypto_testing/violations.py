"""Arguments that break one rule of a contract, or several; the error names the first."""

from __future__ import annotations

import ast
import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import Any

import torch
from custom_pypto.core.contracts.evaluation import Evaluation
from custom_pypto_contract.contract import OpContract, Rule, Tensor
from custom_pypto_contract.expression import parse
from custom_pypto_contract.shape import resolve
from torch.utils._pytree import tree_map_only

from .sample_generator import (
    COARSE_SIZES,
    SIZES,
    WRONG_SIZES,
    Arguments,
    Candidate,
    DrawingError,
    applies,
    broken_rules,
    choices_of,
    describe_rule,
    draw_candidate,
    limits_of,
    rules_of_choices,
)

_OTHER_DTYPES = (torch.int16, torch.float16, torch.float32, torch.bfloat16, torch.bool)
_WRONG_INTS = (-2, -1, 0, 1, 2, 4, 9)
_WRONG_FLOATS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e30)
_TRIES = 100
_REDRAWS = 10
_CALLS = 12
"""The number of right calls in which each tensor in turn is changed."""
_CALLS_OF_SIZES = 3
_OF_WHOLE = ("length", "required_when")
"""What the error says of a whole list."""


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
    yield from _of_tensors(op, random)


@lru_cache(_TRIES)
def _right_call(op: OpContract, number: int) -> tuple[Candidate, Arguments]:
    """Draw one of the right calls that are changed to break rules: to find one takes long.

    Raises:
        DrawingError: no call is right.
    """
    return draw_candidate(op, Random(f"{op.name} {number}"), Candidate.is_right)


def untested_rules(op: OpContract, found: Container[str]) -> Iterator[str]:
    """Describe the rules that no drawn call satisfies, or breaks; violations break `found`.

    Raises:
        DrawingError: no call is right.
    """
    unsatisfied = set(range(len(op.rules)))
    for number in range(_TRIES):
        if not unsatisfied:
            break
        candidate, _ = _right_call(op, number)
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
        # Test this rule first: few candidates break it.
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

    kept = [each for each in rules_of_choices(op) if not _is_alike(rule, each)]
    for sizes in (SIZES, COARSE_SIZES):
        try:
            _, given = draw_candidate(op, random, breaks_it, sizes, kept)
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
    words = [value for _, value in choices_of(op) if isinstance(value, str)]
    values: dict[str, list[Sequence[Any]]] = {
        "int": [_WRONG_INTS],
        "bool": [(False, True)],
        "str": [[*words, "no such word"]],
    }
    wanted: list[tuple[str, Sequence[Any]]] = []
    for argument in (each for each in op.arguments if each.name in rule.names):
        # Each special float is a call of its own: a comparison that refuses one may take another.
        values["float"] = [[each] for each in (*_WRONG_FLOATS, *limits_of(op, argument.name))]
        kind = argument.type.removesuffix("?")
        wanted += [(argument.name, choices) for choices in values.get(kind, ())]
        if kind.endswith("[]"):
            wanted.append((argument.name, [[]]))
        if argument.is_optional:
            wanted.append((argument.name, [None]))
    for number_of_call in range(_TRIES):
        if not wanted:
            return
        _, call = _right_call(op, number_of_call)
        for each in list(wanted):
            name, choices = each
            given = {**call, name: random.choice(choices)}
            broken = [*broken_rules(op, scalars, Evaluation(op, given).value_of)]
            if broken[:1] == [rule] and all(one.argument == rule.argument for one in broken):
                yield Violation(f"rule {number}", rule.argument, given)
                wanted.remove(each)


def _of_tensors(op: OpContract, random: Random) -> Iterator[Violation]:
    """Break what the contract says of each tensor: change one tensor of calls that are right."""
    calls = [_right_call(op, number)[1] for number in range(_CALLS)]
    for tensor in op.tensors:
        found: set[str] = set()
        for number, given in enumerate(_calls_with(op, tensor, calls)):
            index = random.randrange(len(given[tensor.name])) if tensor.is_list else None
            element = tensor.name if index is None else f"{tensor.name}[{index}]"
            for rule, changed in _changes(op, tensor, given, index, random):
                name = tensor.name if rule in _OF_WHOLE else element
                is_new = rule not in found or (rule.startswith("size") and number < _CALLS_OF_SIZES)
                if is_new and _refuses(op, changed, name):
                    found.add(rule)
                    yield Violation(rule, name, changed)
        for given in calls:
            if given[tensor.name] is None and "allowed_when" not in found:
                one = torch.zeros(1, 1, dtype=torch.int32, device="cpu")
                changed = {**given, tensor.name: [one] if tensor.is_list else one}
                values = Evaluation(op, given)
                is_allowed = resolve(tensor.allowed_when, values.value_of) is not None
                if tensor.allowed_when is not None and not is_allowed:
                    found.add("allowed_when")
                    yield Violation("allowed_when", tensor.name, changed)
            for changed in _with_wrong_sums(op, tensor, given):
                yield Violation("values", tensor.name, changed)


def _with_wrong_sums(op: OpContract, tensor: Tensor, given: Arguments) -> Iterator[Arguments]:
    """Break prefix sums, which a kernel reads and a fake does not."""
    values, right = Evaluation(op, given).run_checks(), given[tensor.name]
    kind, _, rest = (resolve(tensor.values, values.value_of) or "").partition(" ")
    is_empty = any(isinstance(each, torch.Tensor) and not each.numel() for each in given.values())
    if right is None or kind != "prefix_sums" or len(right) < 2 or is_empty:
        return
    first, _, last = rest.rpartition("..")
    too_late = values.value(parse(first)) + 1 if first else -1
    for index, sum_ in ((0, too_late), (-1, values.value(parse(last)) + 1), (-1, right[-2] - 1)):
        sums = right.clone()
        sums[index] = sum_
        yield {**given, tensor.name: sums}


def _calls_with(op: OpContract, tensor: Tensor, calls: list[Arguments]) -> list[Arguments]:
    """Return the right calls that have a tensor; draw such a call if none has."""

    def is_given(call: Arguments) -> bool:
        value = call[tensor.name]
        return value is not None and (isinstance(value, torch.Tensor) or value != [])

    drawn = (_right_call(op, number)[1] for number in range(_TRIES))
    return [*filter(is_given, calls)] or [*islice(filter(is_given, drawn), 1)]


def _changes(
    op: OpContract, tensor: Tensor, given: Arguments, index: int | None, random: Random
) -> Iterator[tuple[str, Arguments]]:
    """Yield what a change may break, and the changed call; not every contract refuses it."""
    whole = given[tensor.name]
    value: torch.Tensor = whole if index is None else whole[index]

    def changed(instead: torch.Tensor) -> Arguments:
        made: Any = instead if index is None else [*whole[:index], instead, *whole[index + 1 :]]
        return {**given, tensor.name: made}

    if tensor.shapes:
        yield "ndim", changed(value.new_zeros((*value.shape, 1, 1)))
        yield "ndim", changed(value.unsqueeze(0))
    if not tensor.dtype.are_any:
        for dtype in random.sample(_OTHER_DTYPES, len(_OTHER_DTYPES)):
            yield "dtype", changed(value.to(dtype))
            # Tensors of the same dtype get the wrong one too, so that their rules hold.
            same = [each.name for each in op.tensors if each.dtype.same_as == tensor.name]
            others = {name: given[name] for name in same}
            others = tree_map_only(torch.Tensor, partial(torch.Tensor.to, dtype=dtype), others)
            yield "dtype", {**changed(value.to(dtype)), **others}
    yield "device", changed(value.to("meta"))
    yield "strides", changed(value.new_zeros((*value.shape, 2))[..., 0].copy_(value))
    for axis, size in enumerate(value.shape):
        for wrong in (size + 1, 0):
            sizes = [*value.shape[:axis], wrong, *value.shape[axis + 1 :]]
            yield f"size {axis}", changed(value.new_zeros(sizes))
    if index is not None:
        yield "length", {**given, tensor.name: [*whole, value]}
    if tensor.is_optional:
        yield "required_when", {**given, tensor.name: None}


def _refuses(op: OpContract, given: Arguments, name: str) -> bool:
    """Return whether the contract refuses a call for an argument of this name."""
    try:
        Evaluation(op, given).run_checks()
    except RuntimeError as error:
        return str(error).startswith(f"{op.name}: argument '{name}' ")
    return False
