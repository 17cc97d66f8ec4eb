"""The indexers by the signatures of vllm-ascend and sgl-kernel-npu."""

from __future__ import annotations

import torch
from torch import Tensor


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
    )
    return positions


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
