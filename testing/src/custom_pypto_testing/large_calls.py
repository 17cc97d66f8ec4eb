"""Calls with one dim of a chosen size: for loops with a rest, and for threads."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from random import Random

from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.expression_names import names_in
from custom_pypto_contract.shape import leaves

from .sample_generator import NO_CALL, Arguments, Candidate, DrawingError, draw_candidate

_SMALL = (1, 2, 2, 3, 4, 5, 6, 8, 16, 32)
_SIZES = (256, 512, 1024, 1027, 1056, 2048, 4099, 8195, 16384, 16387, 65536, 65539)
_ENOUGH = 1027
"""From this size on, two threads share a dim at a grain of 1024."""
_ENOUGH_ELEMENTS = 2**16
"""From here on, two threads share the elements at the grain of elementwise.h of blocks."""
_MOST_ELEMENTS = 2**18
"""An op and its reference shall take milliseconds."""
_CANDIDATES = 12
_MOST_WITH_REST = 2**14
_WITH_REST = (67, 35, 19, 13, 11, 7)
"""A loop that takes 2, 4, .. 64 at a time leaves a rest; smaller ones for ops with limits."""


def large_calls(op: OpContract) -> Iterator[tuple[str, Arguments]]:
    """Yield each dim of the op with a call where it is large and the other dims are small.

    A dim is left out where no such call was found. No call is yielded if the contract does not
    describe the outputs.
    """
    for dim, candidates in _candidates_by_dim(op):
        found = None
        for size in _SIZES:
            made = next(_of_size(candidates, dim, size, _MOST_ELEMENTS), None)
            found = made or found
            # Not a larger one than is needed: references may loop over rows.
            if made and size >= _ENOUGH and made[0] >= _ENOUGH_ELEMENTS:
                break
        if found:
            yield dim, found[1]


def calls_with_rest(op: OpContract) -> Iterator[Arguments]:
    """Yield two calls for each dim of the op in which a loop over that dim leaves a rest.

    They are left out where none was found. No call is yielded if the contract does not describe the
    outputs.
    """
    for dim, candidates in _candidates_by_dim(op):
        # The largest call of a size: a rest changes few of an op's choices.
        found = (islice(_of_size(candidates, dim, each, _MOST_WITH_REST), 1) for each in _WITH_REST)
        yield from (given for _, given in islice(chain.from_iterable(found), 2))


def _of_size(
    candidates: list[Candidate], dim: str, size: int, most: int
) -> Iterator[tuple[int, Arguments]]:
    """Yield the right calls with this size of a dim and at most so many elements, largest first."""
    found = []
    for candidate in candidates:
        with suppress(*NO_CALL):
            resized = _resized(candidate, dim, size)
            if resized is not None and resized.is_right():
                sizes = chain.from_iterable(map(resized.sizes_of_all, resized.op.tensors))
                found.append((sum(map(math.prod, sizes)), resized))
    for elements, resized in sorted(found, key=itemgetter(0), reverse=True):
        if 0 < elements <= most:
            with suppress(ValueError):  # No integers fit.
                yield elements, resized.arguments()


def _candidates_by_dim(op: OpContract) -> Iterator[tuple[str, list[Candidate]]]:
    if op.outputs is None:
        return
    random = Random(op.name)
    # If there are none, the tests of drawn calls say so.
    with suppress(DrawingError):
        candidates = [
            draw_candidate(op, random, Candidate.is_right, _SMALL)[0] for _ in range(_CANDIDATES)
        ]
        yield from ((dim, candidates) for dim in op.dims)


def kept_dims(op: OpContract) -> set[str]:
    """Return the dims that outputs and written arguments have; sums are over the others."""
    shapes = [shape for each in op.outputs or () for shape in leaves(each.shape)]
    results = {each.like for each in op.outputs or ()}
    results |= {each.name for each in op.arguments if each.is_mutable}
    shapes += [shape for each in op.tensors if each.name in results for shape in each.shapes]
    return {name for shape in shapes for dim in shape for name in names_in(dim.expression)}


def _resized(candidate: Candidate, dim: str, size: int) -> Candidate | None:
    """Return the candidate with another size of a dim; None where it does not have the dim."""
    old = candidate.dims.get(dim)
    # A variadic dim may be no dims.
    first = old[0] if isinstance(old, list) and old else None
    if old in (None, []) or dim in candidate.lengths or isinstance(first, list):
        return None
    changed = copy.copy(candidate)
    changed.dims = {**candidate.dims, dim: [size, *old[1:]] if isinstance(old, list) else size}
    return changed
