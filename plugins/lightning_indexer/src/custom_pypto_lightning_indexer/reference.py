"""The ops in plain PyTorch, in float64, one sequence after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

Row = tuple[tuple[int, ...], torch.Tensor]
"""A row of the result: its index [row, key head], and its scores [eff] float64 by position."""


def lightning_indexer(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    *,
    sparse_count: int = 2048,
    **options: Any,
) -> torch.Tensor:
    """The definition of README.md; arguments and result as the op's. Checks nothing."""
    rows = score_rows(query, key, weights, **options)
    return _select(rows, query, key, sparse_count)


def quant_lightning_indexer(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    query_dequant_scale: torch.Tensor,
    key_dequant_scale: torch.Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    *,
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    **options: Any,
) -> torch.Tensor:
    """The definition of README.md for int8; arguments and result as the op's. Checks nothing."""
    options |= {"query_scales": query_dequant_scale, "key_scales": key_dequant_scale}
    rows = score_rows(query, key, weights, layout_key=layout_key, **options)
    return _select(rows, query, key, sparse_count)


def _select(
    rows: Iterable[Row], query: torch.Tensor, key: torch.Tensor, sparse_count: int
) -> torch.Tensor:
    result = torch.full(
        (*query.shape[:-2], key.shape[-2], sparse_count), -1, dtype=torch.int32, device="cpu"
    )
    for at, scores in rows:
        best = descending(scores.float())[:sparse_count]
        result[at][: len(best)] = best
    return result


def score_rows(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    *,
    query_scales: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    **options: Any,
) -> Iterator[Row]:
    """The scores of every row that sees a key; arguments as the op's. Without scales they are 1."""
    if query_scales is None or key_scales is None:
        query_scales, key_scales = (torch.ones(t.shape[:-1], device="cpu") for t in (query, key))
    for index, of_row, of_keys in rows_with_keys(
        (query, weights, query_scales), (key, key_scales), **options
    ):
        yield from rows_of(index, *(t.double() for t in (*of_row, *of_keys)))


def rows_with_keys(
    of_queries: Sequence[torch.Tensor],
    of_keys: Sequence[torch.Tensor],
    *,
    actual_seq_lengths_query: torch.Tensor | None = None,
    actual_seq_lengths_key: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "PA_BSND",
    sparse_mode: int = 3,
    **_: object,
) -> Iterator[tuple[tuple[int, ...], list[torch.Tensor], list[torch.Tensor]]]:
    """Every query token that sees a key: its index, its part of each of the tensors `of_queries`,
    and the keys that it sees in each of the tensors `of_keys`.
    """
    query, key = of_queries[0], of_keys[0]
    query_lengths = _lengths(query, layout_query, actual_seq_lengths_query)
    if layout_query == "BSND":
        query_lengths = [min(length, query.shape[1]) for length in query_lengths]
    key_lengths = _lengths(key, layout_key, actual_seq_lengths_key)
    for b, (rows, tokens) in enumerate(zip(query_lengths, key_lengths, strict=True)):
        if layout_query == "TND":
            start = sum(query_lengths[:b])
            of_rows = [t[start : start + rows] for t in of_queries]
            at: list[tuple[int, ...]] = [(start + s,) for s in range(rows)]
        else:
            of_rows = [t[b, :rows] for t in of_queries]
            at = [(b, s) for s in range(rows)]
        if layout_key == "PA_BSND":
            assert block_table is not None
            blocks = block_table[b, : -(-tokens // key.shape[1])].long()
            keys = [t[blocks].flatten(0, 1)[:tokens] for t in of_keys]
        elif layout_key == "TND":
            start = sum(key_lengths[:b])
            keys = [t[start : start + tokens] for t in of_keys]
        else:
            keys = [t[b, :tokens] for t in of_keys]
        for s, index in enumerate(at):
            visible = tokens - (rows - 1 - s) if sparse_mode == 3 else tokens
            if visible > 0:
                yield index, [t[s] for t in of_rows], [t[:visible] for t in keys]


def rows_of(
    index: tuple[int, ...],
    query: torch.Tensor,
    weights: torch.Tensor,
    query_scales: torch.Tensor,
    key: torch.Tensor,
    key_scales: torch.Tensor,
) -> Iterator[Row]:
    """The rows of a token's key heads, from its query [N1, D] and the keys [eff, N2, D] it sees."""
    group = len(query) // key.shape[1]
    for n in range(key.shape[1]):
        heads = slice(n * group, (n + 1) * group)
        scales = query_scales[heads, None] * key_scales[:, n]
        dots = scales * (query[heads] @ key[:, n].T)
        yield (*index, n), (weights[heads, None] * torch.relu(dots)).sum(0)


def _lengths(tensor: torch.Tensor, layout: str, given: torch.Tensor | None) -> list[int]:
    if given is None:
        return [tensor.shape[1]] * tensor.shape[0]
    lengths: list[int] = given.tolist()
    if layout != "TND":
        return lengths
    return [end - start for start, end in zip([0, *lengths], lengths, strict=False)]


def descending(scores: torch.Tensor) -> torch.Tensor:
    """Positions from the highest score to the lowest, equal ones ascending, NaN behind -inf."""
    nan = scores.isnan()
    order = scores.where(~nan, -torch.inf).argsort(descending=True, stable=True)
    return order[nan[order].int().argsort(stable=True)]
