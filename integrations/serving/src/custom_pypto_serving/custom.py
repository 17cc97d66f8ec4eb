"""Ops whose results, defaults or order of arguments are other ones in ``torch.ops.custom``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import attention, indexer, rows, shared_kv
from .hyper_connections import npu_hc_post as npu_hc_post
from .hyper_connections import npu_hc_pre as npu_hc_pre


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


def npu_sparse_attn_sharedkv_metadata(*args: Any, **kwargs: Any) -> Tensor:
    """Return the metadata of a call of `npu_sparse_attn_sharedkv`; `cmp_ratio` is -1 by default."""
    given = {"ori_win_left": 127, "cmp_ratio": -1, **kwargs}
    return shared_kv.npu_sparse_attn_sharedkv_metadata(*args, **given)


def npu_quant_lightning_indexer(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Select as `npu_vllm_quant_lightning_indexer`; `layout_key` is 'PA_BSND' by default."""
    return indexer.npu_vllm_quant_lightning_indexer(*args, **{"layout_key": "PA_BSND", **kwargs})


def compressor(
    x: Tensor,
    wkv: Tensor,
    wgate: Tensor,
    state_cache: Tensor,
    ape: Tensor,
    norm_weight: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    rope_head_dim: int,
    cmp_ratio: int,
    **others: Any,
) -> Tensor:
    """Compress as `custom_pypto_serving.compressor`; two sizes are in another place."""
    first = x, wkv, wgate, state_cache, ape, norm_weight, rope_sin, rope_cos
    return rows.compressor(*first, rope_head_dim=rope_head_dim, cmp_ratio=cmp_ratio, **others)
