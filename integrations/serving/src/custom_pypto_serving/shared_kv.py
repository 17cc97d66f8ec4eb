"""Attention of DeepSeek-V4 by vllm-ascend's signatures, on npu_sparse_flash_mla."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .refusal import require

# The mask of compressed rows by which a token sees those that are complete before it.
_CAUSAL = 3


def npu_sparse_attn_sharedkv(
    q: Tensor,
    *,
    ori_kv: Tensor | None = None,
    cmp_kv: Tensor | None = None,
    ori_sparse_indices: Tensor | None = None,
    cmp_sparse_indices: Tensor | None = None,
    ori_block_table: Tensor | None = None,
    cmp_block_table: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_ori_kv: Tensor | None = None,
    cu_seqlens_cmp_kv: Tensor | None = None,
    seqused_q: Tensor | None = None,
    seqused_kv: Tensor | None = None,
    sinks: Tensor | None = None,
    metadata: Tensor | None = None,
    softmax_scale: float = 0,
    cmp_ratio: int = 0,
    ori_mask_mode: int = 4,
    cmp_mask_mode: int = 3,
    ori_win_left: int = 128,
    ori_win_right: int = 0,
    layout_q: str = "BSND",
    layout_kv: str = "PA_ND",
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attend as vllm-ascend's op of this name.

    Engines also pass `cu_seqlens_ori_kv` and `cu_seqlens_cmp_kv` of pages, which do not have them.

    Args:
        seqused_kv: [B], the tokens of each sequence. It has a row for each of them in `ori_kv`, and
            in `cmp_kv` one for `cmp_ratio` of them.
        metadata: of `npu_sparse_attn_sharedkv_metadata`.
        ori_win_left: how many tokens before its own a token sees, so that 127 is a window of 128.
            NPUs take 127 alone; engines pass it.
        softmax_scale: 0 is the size of q's heads to the power of -0.5.

    Returns:
        The output, as `q`, and with `return_softmax_lse` the log-sum-exp, [B, S, N, 1] or
        [T, N, 1], fp32; else an empty tensor.

    Raises:
        ValueError: there is a `cmp_kv` without a `cmp_ratio`.
    """
    if cmp_kv is not None and cmp_ratio < 1:
        hint = "cmp_kv has a row for so many tokens"
        require("npu_sparse_attn_sharedkv", "cmp_ratio", cmp_ratio, "at least 1", hint)
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_mla(
        q,
        ori_kv=ori_kv,
        cmp_kv=cmp_kv,
        ori_sparse_indices=ori_sparse_indices,
        cmp_sparse_indices=cmp_sparse_indices,
        ori_block_table=ori_block_table,
        cmp_block_table=cmp_block_table,
        cu_seqlens_q=cu_seqlens_q,
        **_of_keys(
            layout_kv,
            (cu_seqlens_ori_kv, cu_seqlens_cmp_kv),
            seqused_kv,
            None if cmp_kv is None else cmp_ratio,
            cmp_mask_mode,
        ),
        seqused_q=seqused_q,
        sinks=sinks,
        metadata=metadata,
        softmax_scale=softmax_scale or q.shape[-1] ** -0.5,
        ori_mask_mode=ori_mask_mode,
        cmp_mask_mode=cmp_mask_mode,
        ori_win_left=ori_win_left,
        ori_win_right=ori_win_right,
        layout_q=layout_q,
        return_softmax_lse=return_softmax_lse,
    )
    return out, lse.squeeze(-3).unsqueeze(-1) if return_softmax_lse else lse.new_empty(0)


sparse_attn_sharedkv = npu_sparse_attn_sharedkv
"""The name in sgl-kernel-npu."""


def npu_sparse_attn_sharedkv_metadata(
    num_heads_q: int,
    num_heads_kv: int,
    head_dim: int,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_ori_kv: Tensor | None = None,
    cu_seqlens_cmp_kv: Tensor | None = None,
    seqused_q: Tensor | None = None,
    seqused_kv: Tensor | None = None,
    batch_size: int = 0,
    max_seqlen_q: int = 0,
    max_seqlen_kv: int = 0,
    ori_topk: int = 0,
    cmp_topk: int = 0,
    cmp_ratio: int = 4,
    ori_mask_mode: int = 4,
    cmp_mask_mode: int = 3,
    ori_win_left: int = 128,
    ori_win_right: int = 0,
    layout_q: str = "BSND",
    layout_kv: str = "PA_ND",
    has_ori_kv: bool = True,
    has_cmp_kv: bool = True,
    device: str | None = None,
) -> Tensor:
    """Return the metadata of a call of `npu_sparse_attn_sharedkv`; the device is its tensors'."""
    del device
    made: Tensor = torch.ops.custom_pypto.npu_sparse_flash_mla_metadata(
        num_heads_q,
        num_heads_kv,
        head_dim,
        cu_seqlens_q=cu_seqlens_q,
        seqused_q=seqused_q,
        **_of_keys(
            layout_kv,
            (cu_seqlens_ori_kv, cu_seqlens_cmp_kv),
            seqused_kv,
            max(cmp_ratio, 1) if has_cmp_kv else None,
            cmp_mask_mode,
        ),
        batch_size=batch_size,
        max_seqlen_q=max_seqlen_q,
        max_seqlen_ori_kv=max_seqlen_kv,
        max_seqlen_cmp_kv=max_seqlen_kv // max(cmp_ratio, 1) if has_cmp_kv else 0,
        ori_topk=ori_topk,
        cmp_topk=cmp_topk,
        ori_mask_mode=ori_mask_mode,
        cmp_mask_mode=cmp_mask_mode,
        ori_win_left=ori_win_left,
        ori_win_right=ori_win_right,
        layout_q=layout_q,
        has_ori_kv=has_ori_kv,
        has_cmp_kv=has_cmp_kv,
    )
    return made


def _of_keys(
    layout: str,
    bounds: tuple[Tensor | None, Tensor | None],
    tokens: Tensor | None,
    ratio: int | None,
    mask_mode: int,
) -> dict[str, Any]:
    """Return what our op takes to know the keys; `ratio` is None without compressed rows."""
    given: dict[str, Any] = {"seqused_ori_kv": tokens, "cmp_ratio": ratio or 1}
    if tokens is not None and ratio is not None:
        given["seqused_cmp_kv"] = tokens // ratio
        if mask_mode == _CAUSAL:
            given["cmp_residual_kv"] = tokens % ratio
    if layout == "PA_ND":
        return {**given, "layout_kv": "PA_BBND"}
    names = ("cu_seqlens_ori_kv", "cu_seqlens_cmp_kv")
    return {**given, "layout_kv": layout, **dict(zip(names, bounds, strict=True))}
