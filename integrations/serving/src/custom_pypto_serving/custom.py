"""Ops that return only the first result, or have other defaults, as ``torch.ops.custom`` does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import attention, shared_kv


def npu_lightning_indexer(*args: Any, **kwargs: Any) -> Tensor:
    """Return only the positions of the op npu_lightning_indexer."""
    positions: Tensor = torch.ops.custom_pypto.npu_lightning_indexer(*args, **kwargs)[0]
    return positions


def npu_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    sparse_indices: Tensor,
    scale_value: float,
    sparse_block_size: int,
    *,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
) -> Tensor:
    """Return only the output of `custom_pypto_serving.npu_sparse_flash_attention`.

    As published, `sparse_block_size` is required, and may be passed by position.
    """
    return attention.npu_sparse_flash_attention(
        query,
        key,
        value,
        sparse_indices,
        scale_value,
        block_table=block_table,
        actual_seq_lengths_query=actual_seq_lengths_query,
        actual_seq_lengths_kv=actual_seq_lengths_kv,
        query_rope=query_rope,
        key_rope=key_rope,
        sparse_block_size=sparse_block_size,
        layout_query=layout_query,
        layout_kv=layout_kv,
        sparse_mode=sparse_mode,
    )[0]


def npu_sparse_attn_sharedkv(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Attend as vllm-ascend's op of this name; `ori_win_left` is 127 by default."""
    return shared_kv.npu_sparse_attn_sharedkv(*args, **{"ori_win_left": 127, **kwargs})
