"""Attention to rows that are keys and values at once, on npu_sparse_flash_mla."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

# CANN's kernel takes one of these numbers of compressed rows for a query.
_NPU_PICKS = (512, 1024)


class Compressed(NamedTuple):
    """Rows that stand for several tokens each.

    Attributes:
        rows: [B, T, D].
        ratio: the tokens of a row. A query sees the rows whose tokens are not after it.
        lengths: [B], the tokens of each sequence, up to the last query.
        picked: [B, S, K], int32, the rows that a query selects, -1 for none; None for all.
    """

    rows: Tensor
    ratio: int
    lengths: Tensor
    picked: Tensor | None


def attend_to_rows(
    query: Tensor,
    rows: Tensor,
    scale: float,
    *,
    indices: Tensor | None = None,
    window: int | None = None,
    compressed: Compressed | None = None,
    sinks: Tensor | None = None,
    want_lse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attend to rows of tokens, to compressed rows, and to a sink without value.

    Args:
        query: [B, S, N, D], of the last S tokens.
        rows: [B, T, D].
        scale: the factor of the products before the softmax.
        indices: [B, S, K], int32, the rows that each query sees, -1 for none; or None.
        window: without indices, the last rows that a query sees, its own too.
        sinks: [N], logits; None for none.
        want_lse: whether to return the log-sum-exp.

    Returns:
        [B, S, N, D], and the log-sum-exp [B, S, N] if it is wanted.
    """
    options: dict[str, Any] = {"ori_win_left": (window or 0) - 1, "ori_mask_mode": 4}
    if indices is not None:
        options.update(ori_sparse_indices=indices[:, :, None], ori_mask_mode=0)
    if compressed is not None and compressed.rows.shape[1]:
        lengths, ratio = compressed.lengths.int(), compressed.ratio
        options.update(
            cmp_kv=compressed.rows[:, :, None],
            seqused_cmp_kv=lengths // ratio,
            cmp_residual_kv=lengths % ratio,
            cmp_ratio=ratio,
        )
        if compressed.picked is not None:
            options["cmp_sparse_indices"] = compressed.picked[:, :, None]
    if sinks is not None:
        sinks = sinks.float()
    if query.device.type != "cpu":
        _complete_for_npu(query, rows, options)
        sinks = query.new_full(query.shape[2:3], -torch.inf).float() if sinks is None else sinks
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_mla(
        query,
        ori_kv=rows[:, :, None],
        sinks=sinks,
        softmax_scale=scale,
        return_softmax_lse=want_lse,
        **options,
    )
    return out, lse[:, 0] if want_lse else lse


def _complete_for_npu(query: Tensor, rows: Tensor, options: dict[str, Any]) -> None:
    """Add what CANN's kernel needs beside the options that define the result."""
    if (indices := options.get("ori_sparse_indices")) is not None:
        # The kernel needs every -1 last.
        options["ori_sparse_indices"] = indices.sort(-1, descending=True).values
        options["ori_topk_length"] = (indices >= 0).sum(-1, dtype=torch.int32)
    if (picked := options.get("cmp_sparse_indices")) is not None:
        count = next((each for each in _NPU_PICKS if each >= picked.shape[-1]), picked.shape[-1])
        options["cmp_sparse_indices"] = pad(picked, (0, count - picked.shape[-1]), value=-1)
    taken = ("seqused_", "cmp_re", "cmp_ra", "ori_topk", "ori_mask", "ori_win")
    (batch, tokens, heads, size), compressed = query.shape, options.get("cmp_kv")
    options["metadata"] = torch.ops.custom_pypto.npu_sparse_flash_mla_metadata(
        heads,
        1,
        size,
        **{name: value for name, value in options.items() if name.startswith(taken)},
        batch_size=batch,
        max_seqlen_q=tokens,
        max_seqlen_ori_kv=rows.shape[1],
        max_seqlen_cmp_kv=0 if compressed is None else compressed.shape[1],
        ori_topk=0 if indices is None else indices.shape[-1],
        cmp_topk=0 if picked is None else options["cmp_sparse_indices"].shape[-1],
        cmp_mask_mode=3,
        ori_win_right=0,
        layout_q="BSND",
        layout_kv="BSND",
        has_cmp_kv=compressed is not None,
    )
