"""The attention of one layer of DeepSeek-V3.2 in a decode step; the values are random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from custom_pypto_vllm.cache_rows import write_rows
from torch import Tensor

HEADS, LATENT, ROPE = 128, 512, 64
INDEX_HEADS, INDEX_SIZE, TOPK = 64, 128, 2048
SCALE = 192**-0.5
# The block size that vLLM's kernel needs, and ours.
DENSE_BLOCK, SPARSE_BLOCK = 16, 128


def make_dense(context: int, requests: int) -> Callable[[], Any]:
    """Return a call of vLLM's kernel for dense MLA."""
    import vllm._C  # noqa: F401  registers it

    cache, table = _paged(context, requests, DENSE_BLOCK, LATENT + ROPE)
    query = torch.randn(requests, HEADS, LATENT + ROPE).bfloat16()
    out = torch.zeros(requests, HEADS, LATENT).bfloat16()
    lengths = torch.full((requests,), context, dtype=torch.int32)
    return lambda: torch.ops._C.mla_decode_kvcache(out, query, cache, SCALE, table, lengths)


def make_sparse(context: int, requests: int) -> dict[str, Callable[[], Any]]:
    """Return the parts of a step on our ops: both cache writes, the indexer, the attention."""
    cache, table = _paged(context, requests, SPARSE_BLOCK, LATENT + ROPE)
    keys, _ = _paged(context, requests, SPARSE_BLOCK, INDEX_SIZE)
    latent = torch.randn(requests, HEADS, LATENT).bfloat16()
    rope = torch.randn(requests, HEADS, ROPE).bfloat16()
    query = torch.randn(requests, INDEX_HEADS, INDEX_SIZE).bfloat16()
    weights = torch.randn(requests, INDEX_HEADS).bfloat16()
    lengths = torch.full((requests,), context, dtype=torch.int32)
    ends = torch.arange(1, requests + 1, dtype=torch.int32)
    slots = table[:, (context - 1) // SPARSE_BLOCK].long() * SPARSE_BLOCK
    slots += (context - 1) % SPARSE_BLOCK
    topk = torch.empty(requests, TOPK, dtype=torch.int32)

    def write() -> None:
        write_rows(cache, slots, latent[:, 0], rope[:, 0])
        write_rows(keys, slots, query[:, 0, :ROPE], query[:, 0, ROPE:])

    def select() -> Tensor:
        found: Tensor = torch.ops.custom_pypto.npu_lightning_indexer_pto(
            query,
            keys.unsqueeze(2),
            weights,
            actual_seq_lengths_query=ends,
            actual_seq_lengths_key=lengths,
            block_table=table,
            layout_query="TND",
            sparse_count=TOPK,
        )
        return topk.copy_(found.squeeze(1))

    def attend() -> Any:
        paged = cache.unsqueeze(2)
        return torch.ops.custom_pypto.npu_sparse_flash_attention(
            latent,
            rope,
            paged[..., :LATENT],
            paged[..., LATENT:],
            topk.unsqueeze(1),
            table,
            lengths,
            scale=SCALE,
            actual_seq_lengths_query=ends,
        )

    select()
    return {"write": write, "indexer": select, "attention": attend}


def _paged(context: int, requests: int, block: int, size: int) -> tuple[Tensor, Tensor]:
    """Return a cache [blocks, block, size] and the blocks of each request, in random order."""
    each = -(-context // block)
    cache = torch.randn(requests * each, block, size).bfloat16()
    table = torch.randperm(requests * each).int().view(requests, each)
    return cache, table
