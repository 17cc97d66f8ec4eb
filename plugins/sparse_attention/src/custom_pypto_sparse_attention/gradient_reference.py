"""npu_sparse_flash_attention_grad in plain PyTorch, token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from .ops import ALL_TOKENS
from .reference import row_lengths, selected_slots, sequences_of_keys, wide


def sparse_flash_attention_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_indices: Tensor,
    d_out: Tensor,
    out: Tensor,
    softmax_max: Tensor,
    softmax_sum: Tensor,
    scale_value: float,
    sparse_block_size: int,
    query_rope: Tensor,
    key_rope: Tensor,
    actual_seq_qlen: Tensor | None = None,
    actual_seq_kvlen: Tensor | None = None,
    layout: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
    attention_mode: int = 0,
    *,
    d_lse: Tensor | None = None,
    block_table: Tensor | None = None,
    paged: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of query, key, value, query_rope and key_rope; arguments as the op's."""
    del sparse_block_size, pre_tokens, next_tokens, attention_mode
    heads, latent = query.shape[-2:]
    dtype = wide(query.dtype)
    sequences = sequences_of_keys(
        key, "PA_BSND" if paged else layout, block_table, actual_seq_kvlen
    )
    rows = row_lengths(query, actual_seq_qlen, len(sequences))
    queries = torch.cat((query, query_rope), -1).flatten(0, -3).to(dtype)
    keys = torch.cat((key, key_rope), -1).flatten(0, -3)[:, 0].to(dtype)
    values = value.flatten(0, -3)[:, 0].to(dtype)
    indices = sparse_indices.flatten(0, -3)[:, 0]
    outer = d_out.flatten(0, -3).to(dtype)
    # The part that all weights of a head share.
    shared = (outer * out.reshape(outer.shape)).sum(-1)
    if d_lse is not None:
        shared = shared - d_lse.reshape(shared.shape)
    maximum, total = (t.reshape(len(rows), heads, 1) for t in (softmax_max, softmax_sum))
    d_queries, d_keys, d_values = map(torch.zeros_like, (queries, keys, values))
    for row, (b, remaining) in enumerate(rows):
        if b < 0:
            continue
        slots = selected_slots(sequences[b], indices[row], remaining, sparse_mode)
        scores = queries[row] @ keys[slots].T * scale_value
        weights = torch.exp(scores - maximum[row]) / total[row]
        d_weights = outer[row] @ values[slots].T
        d_scores = weights * (d_weights - shared[row, :, None]) * scale_value
        d_queries[row] = d_scores @ keys[slots]
        d_keys.index_add_(0, slots, d_scores.T @ queries[row])
        d_values.index_add_(0, slots, weights.T @ outer[row])

    def like(gradient: Tensor, argument: Tensor) -> Tensor:
        return gradient.to(argument.dtype).reshape(argument.shape)

    return (
        like(d_queries[..., :latent], query),
        like(d_keys[..., :latent], key),
        like(d_values, value),
        like(d_queries[..., latent:], query_rope),
        like(d_keys[..., latent:], key_rope),
    )
