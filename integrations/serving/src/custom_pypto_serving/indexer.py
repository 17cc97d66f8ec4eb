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
        "this is a call of torch.ops._C_ascend.npu_quant_lightning_indexer of vllm-ascend 0.20 to"
        " 0.22 (npu_vllm_quant_lightning_indexer since 0.23), another op, which is not served"
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
