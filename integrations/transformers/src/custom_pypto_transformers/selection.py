"""Selects rows that stand for several tokens each: compressed windows, or pools of keys."""

from __future__ import annotations

import torch
from torch import Tensor


def select_rows(
    query: Tensor, rows: Tensor, weights: Tensor, lengths: Tensor, ratio: int, count: int
) -> Tensor:
    """Return the `count` rows with the highest scores: positions [B, S, K], int32; -1 for none.

    Args:
        query: [B, S, N, D], of the last S tokens.
        rows: [B, T, D], each of `ratio` tokens; a token sees those that end at it or before.
        weights: [B, S, N].
        lengths: [B], the tokens of each sequence.
        count: the most rows of a query; K is at most T.
    """
    if not rows.shape[1]:
        return torch.full_like(weights[..., :1], -1, dtype=torch.int32)
    found: Tensor = torch.ops.custom_pypto.npu_lightning_indexer_v2(
        query,
        rows[:, :, None],
        weights,
        min(count, rows.shape[1]),
        seqused_k=lengths // ratio,
        cmp_residual_k=lengths % ratio if ratio > 1 else None,
        mask_mode=3,
        cmp_ratio=ratio,
    )[0]
    return found[:, :, 0]
