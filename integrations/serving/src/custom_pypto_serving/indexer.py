"""The indexers by the signatures of vllm-ascend and sgl-kernel-npu."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import ALL_TOKENS, require

QUANT_OP = "npu_quant_lightning_indexer"


def npu_quant_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
    query_dtype: int | None = None,
    key_dtype: int | None = None,
    metadata: Tensor | None = None,
    cmp_ratio: int = 1,
    return_value: bool = False,
) -> Tensor:
    """Select as torch_npu's op of this name.

    The last three arguments belong to another op of this name, in vllm-ascend 0.20 to 0.22.

    Raises:
        ValueError: the call is one of that op.
    """
    hint = (
        "this is a call of another op, torch.ops._C_ascend.npu_quant_lightning_indexer of"
        " vllm-ascend 0.20 to 0.22: call npu_vllm_quant_lightning_indexer, its name since 0.23"
    )
    require(QUANT_OP, "metadata", metadata, None, hint)
    require(QUANT_OP, "cmp_ratio", cmp_ratio, 1, hint)
    require(QUANT_OP, "return_value", return_value, False, hint)
    positions: Tensor = torch.ops.custom_pypto.npu_quant_lightning_indexer(
        query,
        key,
        weights,
        query_dequant_scale,
        key_dequant_scale,
        query_quant_mode,
        key_quant_mode,
        actual_seq_lengths_query=actual_seq_lengths_query,
        actual_seq_lengths_key=actual_seq_lengths_key,
        block_table=block_table,
        layout_query=layout_query,
        layout_key=layout_key,
        sparse_count=sparse_count,
        sparse_mode=sparse_mode,
        pre_tokens=pre_tokens,
        next_tokens=next_tokens,
        query_dtype=query_dtype,
        key_dtype=key_dtype,
    )
    return positions


def npu_vllm_quant_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    query_quant_mode: int = 0,
    key_quant_mode: int = 0,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    metadata: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
    cmp_ratio: int = 1,
    return_value: bool = False,
) -> tuple[Tensor, Tensor]:
    """Select as vllm-ascend's op of this name, on npu_quant_lightning_indexer_v2.

    Args:
        actual_seq_lengths_key: [B], the tokens of each sequence; `cmp_ratio` of them have a key.
        metadata: not read: it is made for a kernel of vllm-ascend.

    Raises:
        ValueError: the op does not support an argument.
    """
    op, hint = "npu_vllm_quant_lightning_indexer", "call npu_quant_lightning_indexer_v2"
    for name, mode in (("query_quant_mode", query_quant_mode), ("key_quant_mode", key_quant_mode)):
        require(op, name, mode, 0, hint)
    for name, tokens in (("pre_tokens", pre_tokens), ("next_tokens", next_tokens)):
        require(op, name, tokens, ALL_TOKENS, "token windows are not supported")
    if layout_key != "BSND":
        require(op, "layout_key", layout_key, "PA_BSND", hint)
    lengths: dict[str, Tensor | None] = {"seqused_k": actual_seq_lengths_key}
    if actual_seq_lengths_key is not None and cmp_ratio > 1:
        lengths = {"seqused_k": actual_seq_lengths_key // cmp_ratio}
        if sparse_mode == 3:
            lengths["cmp_residual_k"] = actual_seq_lengths_key % cmp_ratio
    if layout_query == "TND" and actual_seq_lengths_query is not None:
        lengths["cu_seqlens_q"] = torch.nn.functional.pad(actual_seq_lengths_query, (1, 0))
    else:
        lengths["seqused_q"] = actual_seq_lengths_query
    found: tuple[Tensor, Tensor] = torch.ops.custom_pypto.npu_quant_lightning_indexer_v2(
        query,
        key,
        weights,
        query_dequant_scale,
        key_dequant_scale,
        sparse_count,
        2 if query.dtype == torch.int8 else 1,
        **lengths,
        block_table=block_table,
        layout_q=layout_query,
        layout_k=layout_key.replace("PA_BSND", "PA_BBND"),
        mask_mode=sparse_mode,
        cmp_ratio=cmp_ratio,
        return_value=int(return_value),
    )
    return found


def npu_lightning_indexer_quant(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    query_quant_mode: int = 0,
    key_quant_mode: int = 0,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
) -> Tensor:
    """Select as vllm-ascend's op of this name; the op here is npu_quant_lightning_indexer."""
    return npu_quant_lightning_indexer(
        query,
        key,
        weights,
        query_dequant_scale,
        key_dequant_scale,
        query_quant_mode,
        key_quant_mode,
        actual_seq_lengths_query=actual_seq_lengths_query,
        actual_seq_lengths_key=actual_seq_lengths_key,
        block_table=block_table,
        layout_query=layout_query,
        layout_key=layout_key,
        sparse_count=sparse_count,
        sparse_mode=sparse_mode,
    )


def lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str | None = None,
    layout_key: str | None = None,
    sparse_count: int | None = None,
    sparse_mode: int | None = None,
) -> Tensor:
    """Select as sgl-kernel-npu's op of this name; None means its default."""
    positions: Tensor = torch.ops.custom_pypto.npu_lightning_indexer_pto(
        query,
        key,
        weights,
        actual_seq_lengths_query=actual_seq_lengths_query,
        actual_seq_lengths_key=actual_seq_lengths_key,
        block_table=block_table,
        layout_query="TND" if layout_query is None else layout_query,
        layout_key="PA_BSND" if layout_key is None else layout_key,
        sparse_count=2048 if sparse_count is None else sparse_count,
        sparse_mode=3 if sparse_mode is None else sparse_mode,
    )
    return positions
