"""Samples drawn from the contract, for an op without samples of its author."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from operator import eq
from random import Random

from custom_pypto_contract.contract import OpContract
from custom_pypto_plugin import SampleInput
from torch.utils._pytree import tree_leaves

from .sample_generator import Arguments, Candidate, DrawingError, choices_of, draw_candidate

_SIZES = (2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 32, 48)
"""Without 0 and 1, which PyTorch specialises; with some multiples that NPUs need."""

_TRIES = 300
_COUNT = 4

DRAWS = 8
"""How many random calls the suite makes of an op beside its samples."""


def as_sample(
    op: OpContract, given: Arguments, name: str = "", *, by_name: bool = False
) -> SampleInput:
    """Return the call with its arguments by position where the schema takes them so."""
    args = [] if by_name else [each.name for each in op.arguments if not each.is_keyword_only]
    kwargs = {each: value for each, value in given.items() if each not in args}
    return SampleInput(tuple(given[each] for each in args), kwargs, name)


def drawn_calls(
    op: OpContract, count: int | None = None, device: str = "cpu"
) -> Iterator[Arguments]:
    """Return random calls that the contract allows; none if it does not describe the outputs.

    For another device than the CPU they also keep the limits of every NPU kernel.

    Raises:
        DrawingError: nothing that it allows was found.
    """
    if op.outputs is None:
        return
    op, random = _limited(op, device), Random(op.name)
    new, left = _NewChoice(op), DRAWS if count is None else count
    while left > 0 or new.choices:
        yield new.keep(draw_candidate(op, random, new.is_in)[1])
        left -= 1


def drawn_samples(op: OpContract, device: str = "cpu") -> Iterator[SampleInput]:
    """Return some calls, some of them resized; on the CPU a float64 call if the op takes float64.

    For another device they keep the limits of every NPU kernel.

    Raises:
        DrawingError: nothing that the contract allows was found.
    """
    op, random = _limited(op, device), Random(op.name)
    new = _NewChoice(op)
    for number in range(_COUNT):
        yield replace(_with_resized(op, random, new), name=f"drawn-{number}")
        given = new.keep(draw_candidate(op, random, new.is_in)[1])
        yield as_sample(op, given, f"drawn-any-size-{number}", by_name=True)
    with suppress(DrawingError):
        if device == "cpu":
            _, given = draw_candidate(op, random, _is_float64, _SIZES)
            yield as_sample(op, given, "drawn-float64")


class _NewChoice:
    """Wants right calls with a choice that no call had yet, for as long as some are found."""

    def __init__(self, op: OpContract) -> None:
        self.choices, self._tries = choices_of(op), 0

    def is_in(self, candidate: Candidate) -> bool:
        self._tries += 1
        if self._tries > _TRIES:
            self.choices = []
        is_new = any(each in candidate.scalars.items() for each in self.choices)
        return (is_new or not self.choices) and candidate.is_right()

    def keep(self, given: Arguments) -> Arguments:
        self.choices, self._tries = [c for c in self.choices if c not in given.items()], 0
        return given


def _with_resized(op: OpContract, random: Random, new: _NewChoice) -> SampleInput:
    """Draw a call whose dims all differ, and the same call with other dims."""
    for _ in range(_TRIES):
        candidate, _ = draw_candidate(op, random, new.is_in, _SIZES)
        candidate.lay_plainly()
        try:
            candidate.draw_sizes(_SIZES, are_distinct=True)
            if not candidate.is_right():
                continue
            sample = as_sample(op, candidate.arguments())
            dims, sizes = _dims(candidate), _sizes(candidate)
            candidate.draw_sizes(_SIZES, are_distinct=True)
            if not dims or not candidate.is_right() or any(map(eq, dims, _dims(candidate))):
                continue
            # PyTorch specialises 0 and 1, which a part of a dim may be.
            pairs = zip(sizes, _sizes(candidate), strict=True)
            if any(one != other and min(one, other) < 2 for one, other in pairs):
                continue
            return replace(sample, resized=as_sample(op, new.keep(candidate.arguments())))
        except (ValueError, IndexError):
            continue
    return as_sample(op, draw_candidate(op, random, Candidate.is_right)[1])


def _dims(candidate: Candidate) -> list[int]:
    """Return the sizes that were drawn, but not how many tensors a list has."""

    return tree_leaves([n for name, n in candidate.dims.items() if name not in candidate.lengths])


def _sizes(candidate: Candidate) -> list[int]:
    shapes = (each for tensor in candidate.op.tensors for each in candidate.sizes_of_all(tensor))
    return [size for shape in shapes for size in shape]


def _limited(op: OpContract, device: str) -> OpContract:
    limits = chain.from_iterable(op.npu.limits.values())
    return op if device == "cpu" else replace(op, rules=(*op.rules, *limits))


def _is_float64(candidate: Candidate) -> bool:
    arguments = (candidate.op.argument(each.name) for each in candidate.op.tensors)
    given = (each for each in arguments if candidate.shapes[each.name] is not None)
    names = (each.name for each in given if not each.is_keyword_only and not each.is_mutable)
    floats = {each for each in map(candidate.dtype_of, names) if "float" in each}
    return floats == {"float64"} and candidate.is_right()
