"""The shape rules of the four ops, for symbolic and concrete sizes alike."""

from __future__ import annotations

import torch
from torch import Tensor


def _columns(weight: Tensor) -> int:
    return weight.shape[1] if weight.dim() == 2 else weight.shape[0] * weight.shape[2]


def mla_prolog(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """query [.., N1, L], query_rope [.., N1, R], q_norm [.., Q], all like x."""
    leading, (heads, _, latent) = x.shape[:-1], w_uk.shape
    return (
        x.new_empty((*leading, heads, latent)),
        x.new_empty((*leading, heads, sin.shape[-1])),
        x.new_empty((*leading, _columns(w_dq))),
    )


def indexer_prolog(
    x: Tensor,
    q_norm: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    index_k_cache: Tensor,
) -> tuple[Tensor, Tensor]:
    """query_index [.., N, D] and weights [.., N], both like x."""
    leading, heads = x.shape[:-1], _columns(w_idx_proj)
    return (
        x.new_empty((*leading, heads, _columns(w_idx_k))),
        x.new_empty((*leading, heads)),
    )


def sparse_flash_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    actual_seq_lengths_kv: Tensor,
    *,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Out like query (contiguous), lse fp32 [.., N1] or, when not asked for, [0]."""
    shape = query.shape[:-1] if return_softmax_lse else (0,)
    return query.new_empty(query.shape), query.new_empty(shape, dtype=torch.float32)


def sparse_attention(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    block_table: Tensor,
    act_seqs: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    index_k_cache: Tensor,
) -> Tensor:
    """[B, S1, N1, L] like x."""
    heads, _, latent = w_uk.shape
    return x.new_empty((*x.shape[:-1], heads, latent))
