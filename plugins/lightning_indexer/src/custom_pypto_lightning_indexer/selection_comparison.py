"""Whether the positions that a kernel chose are the highest-scoring ones, up to fp32 rounding.

The scores are computed here again, head by head and independently of the reference, so that a
mistake of the reference shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference

_OF_THE_LARGEST = {
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
    torch.float32: 1e-5,
    torch.float64: 1e-9,
}
"""The largest error of values and gradients, as a part of the largest number."""

RELATIVE = 1e-5
"""Scores nearer than this, relative to the larger one, may swap places."""

ROUNDING = 2.0**-21
"""So may scores whose difference is less than this part of the sum of their terms' magnitudes: four
roundings of fp32. It matters where terms cancel."""


@dataclass(frozen=True)
class _Row:
    """One row of the result: its index [row, key head], and what its keys score."""

    at: tuple[int, ...]
    scores: Tensor
    """[eff] float64; a key's position is its index."""
    magnitudes: Tensor
    """[eff] float64: the scores with every product made positive, against which fp32 rounds."""


def compare(op: str, actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of an op that selects positions, for the arguments of `sample`.

    Rows with exactly the expected positions pass. In any other the scores, in float64, must
    descend, none that was left out may exceed the last one chosen, and the number of positions must
    be right. Values are compared with those of the positions found.

    Raises:
        AssertionError: they do not; the message names the row and the positions.
    """
    a = reference.bind(op, sample.args, sample.kwargs)
    if op in reference.WITHOUT_VALUES:
        compare_rows(actual, expected, rows(a))
        return
    found, wanted = (reference.move(each[0], a, -1) for each in (actual, expected))
    compare_rows(found, wanted, rows(a))
    assert_close("values", actual[1], reference.values_of(found.cpu(), a))


def compare_gradients(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Each by the largest number in it, as sums of many terms round."""
    del sample
    for name, left, right in zip(("query", "key", "weights"), actual, expected, strict=True):
        assert_close(f"gradient of {name}", left, right)


def assert_close(name: str, actual: Tensor, expected: Tensor) -> None:
    """Raise AssertionError unless all errors are small against the largest number."""
    # Whoever asks for the reference alone need not have the suite.
    from custom_pypto_testing.comparison import Tolerance, assert_tensors_close

    largest = expected.double().nan_to_num(0.0, 0.0, 0.0).abs().max() if expected.numel() else 0.0
    limit = _OF_THE_LARGEST[expected.dtype] * float(largest)
    tolerance = Tolerance(relative=0.0, absolute=limit, cosine=math.inf)
    assert_tensors_close(name, actual, expected, {expected.dtype: tolerance})


def compare_rows(actual: Any, expected: Any, rows: Iterator[_Row]) -> None:
    """Compare positions whose rows that see a key are `rows`, as `compare` does.

    Raises:
        AssertionError: they differ.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"expected {expected.dtype} {list(expected.shape)},"
            f" got {actual.dtype} {list(actual.shape)}"
        )
    if actual.equal(expected):
        return
    unscored = torch.ones(expected.shape[:-1], dtype=torch.bool, device="cpu")
    for row in rows:
        unscored[row.at] = False
        _compare_row(row, actual[row.at].long(), expected[row.at].long())
    wrong = unscored & actual.ne(-1).any(-1)
    if wrong.any():
        at = wrong.nonzero()[0].tolist()
        raise AssertionError(f"row {at} sees no key, so it must be all -1, got {actual[tuple(at)]}")


def rows(a: SimpleNamespace) -> Iterator[_Row]:
    """Every row that sees a key; the arguments are those of `reference.bind`."""
    query, key = (
        tensor.double() * scales.double()[..., None]
        for tensor, scales in ((a.query, a.query_dequant_scale), (a.key, a.key_dequant_scale))
    )
    lengths = _keys(a) if a.layout_k == "PA_BBND" else _tokens(key, a.cu_seqlens_k, a.seqused_k)
    residuals = [0] * len(lengths) if a.cmp_residual_k is None else a.cmp_residual_k.tolist()
    tokens = _tokens(query, a.cu_seqlens_q, a.seqused_q)
    for of_sequence, places, residual in zip(tokens, lengths, residuals, strict=True):
        if not places:
            continue
        keys = key[torch.tensor(places, device="cpu").unbind(-1)]
        for index, at in enumerate(of_sequence):
            later = len(of_sequence) - 1 - index
            seen = len(keys)
            if a.mask_mode == 3:
                seen = (seen * a.cmp_ratio + residual - later) // a.cmp_ratio
            if seen > 0:
                yield from rows_of_heads(at, query[at], a.weights[at].double(), keys[:seen])


Places = list[list[tuple[int, ...]]]


def _tokens(tensor: Tensor, sums: Tensor | None, used: Tensor | None) -> Places:
    """Where in `tensor`, which is not paged, each sequence's tokens are."""
    if sums is None:
        batch, most = tensor.shape[:2]
        places: Places = [[(b, s) for s in range(most)] for b in range(batch)]
    else:
        places = [[(t,) for t in range(*ends)] for ends in pairwise(sums.tolist())]
    if used is None:
        return places
    return [each[:count] for each, count in zip(places, used.tolist(), strict=True)]


def _keys(a: SimpleNamespace) -> Places:
    """Where in paged keys each sequence's tokens are, by position."""
    size = a.key.shape[1]
    return [
        [(row[position // size], position % size) for position in range(length)]
        for row, length in zip(a.block_table.tolist(), a.seqused_k.tolist(), strict=True)
    ]


def rows_of_heads(
    at: tuple[int, ...], query: Tensor, weights: Tensor, keys: Tensor
) -> Iterator[_Row]:
    """The rows of a token's key heads, from query [N1, D], weights [N1] and keys [eff, N2, D]."""
    heads = keys.shape[1]
    for head, (q, w, k) in enumerate(
        zip(query.chunk(heads), weights.chunk(heads), keys.unbind(1), strict=True)
    ):
        scores = torch.zeros(len(k), dtype=torch.float64, device="cpu")
        magnitudes = torch.zeros_like(scores)
        for one, weight in zip(q, w, strict=True):
            products = k * one
            scores += weight * products.sum(-1).clamp(min=0)
            magnitudes += weight.abs() * products.abs().sum(-1)
        yield _Row((*at, head), scores, magnitudes)


def _compare_row(row: _Row, actual: Tensor, expected: Tensor) -> None:
    if actual.equal(expected):
        return
    where = f"row {list(row.at)}"
    count = int(expected.ne(-1).sum())
    chosen, rest = actual[:count], actual[count:]
    eff = len(row.scores)
    if not rest.eq(-1).all() or not ((chosen >= 0) & (chosen < eff)).all():
        raise AssertionError(
            f"{where}: must hold {count} positions below {eff}, then -1, got {actual.tolist()}"
        )
    if len(set(chosen.tolist())) != count:
        raise AssertionError(f"{where}: a position was chosen twice: {chosen.tolist()}")
    specials = row.scores.isnan() | row.scores.isinf()
    differing = chosen.ne(expected[:count])
    if (differing & (specials[chosen] | specials[expected[:count]])).any():
        at = int(differing.nonzero()[0])
        raise AssertionError(
            f"{where}: place {at} is position {int(chosen[at])} with score"
            f" {float(row.scores[chosen[at]])}, expected position {int(expected[at])} with score"
            f" {float(row.scores[expected[at]])}"
        )
    _check_descends(row, chosen, where)


def _check_descends(row: _Row, chosen: Tensor, where: str) -> None:
    """Each chosen score is at least every later one and every one left out."""
    left_out = torch.ones(len(row.scores), dtype=torch.bool, device="cpu")
    left_out[chosen] = False
    finite = row.scores.isfinite()
    chosen = chosen[finite[chosen]]
    others = (left_out & finite).nonzero().flatten()
    order = torch.cat([chosen, others])
    scores, magnitudes = row.scores[order], row.magnitudes[order]
    slack = RELATIVE / 2 * scores.abs() + ROUNDING / 2 * magnitudes
    # Half of the slack is each score's own: the lowest that it may be taken for.
    highest_later = (scores - slack).flip(0).cummax(0).values.flip(0)
    wrong = (scores + slack)[: len(chosen)] < highest_later[: len(chosen)]
    if wrong.any():
        at = int(wrong.nonzero()[0])
        better = at + int((scores - slack)[at:].argmax())
        raise AssertionError(
            f"{where}: place {at} is position {int(order[at])} with score {float(scores[at])}, but"
            f" position {int(order[better])} scores {float(scores[better])}"
        )
