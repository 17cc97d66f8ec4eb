"""Whether the positions that a kernel chose are the highest-scoring ones, up to fp32 rounding.

The scores are computed here again, head by head and independently of the reference, so that a
mistake of the reference shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from custom_pypto_plugin import SampleInput

RELATIVE = 1e-5
"""Scores nearer than this, relative to the larger one, may swap places."""

ROUNDING = 2.0**-21
"""So may scores whose difference is less than this part of the sum of their terms' magnitudes: four
roundings of fp32. It matters where terms cancel."""


@dataclass(frozen=True)
class _Row:
    """One row of the result: its index [row, key head], and what its keys score."""

    at: tuple[int, ...]
    scores: torch.Tensor
    """[eff] float64; a key's position is its index."""
    magnitudes: torch.Tensor
    """[eff] float64: the scores with every product made positive, against which fp32 rounds."""


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of npu_lightning_indexer_pto for the arguments of `sample`.

    Rows with exactly the expected positions pass. In any other the scores, in float64, must
    descend, none that was left out may exceed the last one chosen, and the number of positions must
    be right.

    Raises:
        AssertionError: they do not; the message names the row and the positions.
    """
    compare_rows(actual, expected, _rows(*sample.args, **sample.kwargs))


def compare_quant(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of npu_quant_lightning_indexer, as `compare` does.

    Raises:
        AssertionError: they differ.
    """
    compare_rows(actual, expected, _quant_rows(*sample.args, **sample.kwargs))


def compare_rows(actual: Any, expected: Any, rows: Iterator[_Row]) -> None:
    """Compare two results whose rows that see a key are `rows`, as `compare` does.

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


def _quant_rows(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    query_dequant_scale: torch.Tensor,
    key_dequant_scale: torch.Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    *,
    layout_key: str = "BSND",
    **options: Any,
) -> Iterator[_Row]:
    """Every row of npu_quant_lightning_indexer that sees a key."""
    return _rows(
        query.double() * query_dequant_scale.double()[..., None],
        key.double() * key_dequant_scale.double()[..., None],
        weights,
        layout_key=layout_key,
        **options,
    )


def _rows(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    *,
    actual_seq_lengths_query: torch.Tensor | None = None,
    actual_seq_lengths_key: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "PA_BSND",
    sparse_mode: int = 3,
    **_: object,
) -> Iterator[_Row]:
    tokens = _tokens(query, layout_query, actual_seq_lengths_query)
    lengths = _keys(key, layout_key, actual_seq_lengths_key, block_table)
    for rows, places in zip(tokens, lengths, strict=True):
        if not places:
            continue
        where = torch.tensor(places, device="cpu").unbind(-1)
        keys = key[where].double()
        for index, at in enumerate(rows):
            later = len(rows) - 1 - index
            seen = max(len(keys) - later, 0) if sparse_mode == 3 else len(keys)
            if seen:
                yield from rows_of_heads(at, query[at].double(), weights[at].double(), keys[:seen])


def _tokens(
    tensor: torch.Tensor, layout: str, lengths: torch.Tensor | None
) -> list[list[tuple[int, ...]]]:
    """Where in `query`, or in keys without pages, each sequence's tokens are."""
    if layout == "TND":
        assert lengths is not None
        return [[(t,) for t in range(*ends)] for ends in pairwise([0, *lengths.tolist()])]
    batch, most = tensor.shape[:2]
    counts = [most] * batch if lengths is None else lengths.tolist()
    return [[(b, s) for s in range(most) if s < count] for b, count in enumerate(counts)]


def _keys(
    key: torch.Tensor, layout: str, lengths: torch.Tensor | None, block_table: torch.Tensor | None
) -> list[list[tuple[int, ...]]]:
    """Where in `key` each sequence's tokens are, by position."""
    if layout != "PA_BSND":
        return _tokens(key, layout, lengths)
    assert lengths is not None
    assert block_table is not None
    size = key.shape[1]
    return [
        [(row[position // size], position % size) for position in range(length)]
        for row, length in zip(block_table.tolist(), lengths.tolist(), strict=True)
    ]


def rows_of_heads(
    at: tuple[int, ...], query: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor
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


def _compare_row(row: _Row, actual: torch.Tensor, expected: torch.Tensor) -> None:
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


def _check_descends(row: _Row, chosen: torch.Tensor, where: str) -> None:
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
