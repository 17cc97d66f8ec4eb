"""Sparse attention by torch_npu's signature, on npu_sparse_flash_attention."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import ALL_TOKENS, require

OP = "npu_sparse_flash_attention"
RANKS = {"TND": 3, "BSND": 4}


def npu_sparse_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    sparse_indices: Tensor,
    scale_value: float,
    *,
    block_table: Tensor | None = None,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
    attention_mode: int = 2,
    return_softmax_lse: bool = False,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend to the positions that `sparse_indices` lists, as torch_npu's op of this name.

    Args:
        query: [T, N1, L], or [B, S1, N1, L] by `layout_query`.
        key: the latents, by `layout_kv` PA_BSND [blocks, block_size, 1, L], BSND [B, S2, 1, L] or
            TND [T2, 1, L].
        value: the same tensor as `key`, or None.
        sparse_indices: [T, 1, K] or [B, S1, 1, K], int32 or int64; -1 where there are fewer.
        scale_value: the factor of the scores.
        block_table: [B, M], for PA_BSND only.
        actual_seq_lengths_query: [B]; for TND the prefix sums.
        actual_seq_lengths_kv: [B]; for TND the prefix sums.
        query_rope: as `query`, with size R.
        key_rope: as `key`, with size R.

    Returns:
        The output, as `query`, and two fp32 tensors, softmax_max and softmax_sum, [1, T, N1] or
        [B, 1, S1, N1], which are empty without `return_softmax_lse`. The log-sum-exp of the scores
        is max + log(sum): here max is the log-sum-exp itself, and sum is 1.

    Raises:
        ValueError: the op does not support an argument.
    """
    require(OP, "sparse_block_size", sparse_block_size, 1, "sparse_indices lists single tokens")
    require(OP, "attention_mode", attention_mode, 2, "queries are absorbed into the latent space")
    require(OP, "sinks", sinks, None, "attention sinks are not supported")
    hint = "token windows are not supported: leave it out"
    require(OP, "pre_tokens", pre_tokens, ALL_TOKENS, hint)
    require(OP, "next_tokens", next_tokens, ALL_TOKENS, hint)
    if layout_query not in RANKS or query.dim() != RANKS[layout_query]:
        raise ValueError(
            f"{OP}: argument 'layout_query' must be 'TND' for a query of 3 dimensions, 'BSND' for"
            f" one of 4, got {layout_query!r} and {query.dim()} dimensions"
        )
    if value is not None and value is not key and not _is_same(value, key):
        raise ValueError(
            f"{OP}: argument 'value' must be the same tensor as key, whose latents are both; pass"
            " key twice"
        )
    for name, tensor in (("query_rope", query_rope), ("key_rope", key_rope)):
        if tensor is None:
            raise ValueError(f"{OP}: argument {name!r} must be given for attention_mode 2")
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_attention(
        query,
        query_rope,
        key,
        key_rope,
        sparse_indices,
        block_table,
        actual_seq_lengths_kv,
        scale=scale_value,
        actual_seq_lengths_query=actual_seq_lengths_query,
        sparse_mode=sparse_mode,
        return_softmax_lse=return_softmax_lse,
        layout_kv=layout_kv,
    )
    if return_softmax_lse:
        # Both engines have a dimension for the one key head.
        lse = lse.unsqueeze(-3)
    return out, lse, torch.ones_like(lse)


def _is_same(one: Tensor, other: Tensor) -> bool:
    # torch.compile cannot trace is_set_to, and so cannot tell another tensor of this shape.
    if torch.compiler.is_compiling():
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    return one.is_set_to(other)
