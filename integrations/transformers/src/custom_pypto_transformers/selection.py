"""Selects rows that stand for several tokens each: compressed windows, or pools of keys."""

from __future__ import annotations

import torch
from torch import Tensor

from .pages import row_pitch


def select_rows(query: Tensor, rows: Tensor, weights: Tensor, seen: Tensor, count: int) -> Tensor:
    """Return the `count` rows with the highest scores: positions [B, S, K], int32; -1 for none.

    Args:
        query: [B, S, N, D].
        rows: [B, T, D].
        weights: [B, S, N].
        seen: [B, S], int64, the rows that a query sees: the first so many.
        count: the most rows of a query; K is at most T.
    """
    (batch, tokens), held = seen.shape, rows.shape[1]
    seen = seen.clamp(0, held)
    op, options = torch.ops.custom_pypto.npu_lightning_indexer_pto, {"sparse_count": count}
    if not held:
        return seen.new_full((batch, tokens, 1), -1, dtype=torch.int32)
    options["sparse_count"] = min(count, held)
    options["sparse_mode"] = 0
    if tokens == 1:
        lengths = seen[:, 0].int()
        return op(
            query,
            rows[:, :, None],
            weights,
            actual_seq_lengths_key=lengths,
            layout_key="BSND",
            **options,
        )[:, :, 0]
    # Each run of queries that see the same rows is a sequence; its only page is the whole row.
    starts = torch.ones_like(seen, dtype=torch.bool)
    starts[:, 1:] = seen[:, 1:] != seen[:, :-1]
    first = starts.flatten().nonzero()[:, 0]
    last = torch.cat([first[1:], first.new_tensor([batch * tokens])])
    pages = rows if row_pitch(rows) else rows.contiguous()
    return op(
        query.flatten(0, 1),
        pages[:, :, None],
        weights.flatten(0, 1),
        actual_seq_lengths_query=last,
        actual_seq_lengths_key=seen.flatten()[first],
        block_table=(first // tokens).int()[:, None],
        layout_query="TND",
        layout_key="PA_BSND",
        **options,
    ).view(batch, tokens, -1)
