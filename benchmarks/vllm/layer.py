"""The attention of one layer of DeepSeek-V3.2 in a decode step; the values are random."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto_vllm.attention import SparseAttention
from custom_pypto_vllm.index_cache import IndexCache, Int8IndexCache, keys_and_scales
from custom_pypto_vllm.metadata import StepMetadata
from custom_pypto_vllm.platform import BLOCK_SIZE
from torch import Tensor

from benchmarks.cases.paging import block_table, generator, normal
from benchmarks.vllm.stack import HEADS, INDEX_HEADS, INDEX_SIZE, LATENT, NOPE, ROPE, TOPK

SCALE = (NOPE + ROPE) ** -0.5
# What vLLM's kernel needs.
DENSE_BLOCK = 16


def make_dense(context: int, requests: int) -> Callable[[], Any]:
    """Return a call of the kernel of vLLM's reference MLA."""
    # Registers it, from the library that vLLM chooses for this CPU.
    import vllm._custom_ops  # noqa: F401

    cache, table = _paged(context, requests, DENSE_BLOCK, LATENT + ROPE)
    query = _normal(requests, HEADS, LATENT + ROPE)
    out = torch.zeros_like(query[..., :LATENT])
    lengths = torch.full((requests,), context, dtype=torch.int32)
    return lambda: torch.ops._C.mla_decode_kvcache(out, query, cache, SCALE, table, lengths)


class Sparse:
    """The parts of our layer, without its projections."""

    def __init__(self, context: int, requests: int) -> None:
        self._cache, table = _paged(context, requests, BLOCK_SIZE, LATENT + ROPE)
        keys, _ = _paged(context, requests, BLOCK_SIZE, INDEX_SIZE)
        last = context - 1
        self._step = StepMetadata(
            num_actual_tokens=requests,
            query_ends=torch.arange(1, requests + 1, dtype=torch.int32),
            seq_lens=torch.full((requests,), context, dtype=torch.int32),
            block_table=table,
            slot_mapping=table[:, last // BLOCK_SIZE].long() * BLOCK_SIZE + last % BLOCK_SIZE,
            num_decodes=requests,
            num_decode_tokens=requests,
        )
        self._index: Any = SimpleNamespace(kv_cache=keys)
        self._int8: Any = _int8_cache(keys)
        self._topk = torch.empty(requests, TOPK, dtype=torch.int32)
        self._attention = SparseAttention(
            HEADS,
            LATENT + ROPE,
            SCALE,
            kv_lora_rank=LATENT,
            topk_indices_buffer=self._topk,
        )
        self._latent = _normal(requests, HEADS, LATENT)
        self._rope = _normal(requests, HEADS, ROPE)
        self._query = _normal(requests, INDEX_HEADS, INDEX_SIZE)
        self._weights = _normal(requests, INDEX_HEADS)
        self.select()

    def write(self) -> None:
        """Write the latents and the index keys of the new tokens."""
        slots = self._step.slot_mapping
        self._attention.do_kv_cache_update(self._latent[:, 0], self._rope[:, 0], self._cache, slots)
        key = self._query[:, 0]
        IndexCache.write(self._index, key[:, :ROPE], key[:, ROPE:], slots)

    def select(self) -> Tensor:
        """Return the positions that each request selects."""
        found = IndexCache.select(self._index, self._query, self._weights, self._step, TOPK)
        return self._topk.copy_(found)

    def select_int8(self) -> Tensor:
        """Return the positions that each request selects from keys of 8 bits."""
        return Int8IndexCache.select(self._int8, self._query, self._weights, self._step, TOPK)

    def attend(self) -> Any:
        """Attend to the selected positions."""
        query = (self._latent, self._rope)
        return self._attention.forward_mqa(query, self._cache, self._step, None)

    def overlap(self) -> float:
        """Return which share of the selected positions is selected from keys of 8 bits, too."""
        pairs = zip(self.select().tolist(), self.select_int8().tolist(), strict=True)
        shares = [len({*exact} & {*int8}) / len({*exact}) for exact, int8 in pairs]
        return sum(shares) / len(shares)


def _int8_cache(keys: Tensor) -> Any:
    """Return what Int8IndexCache has once `keys` are written to it."""
    blocks, block, size = keys.shape
    cache = torch.empty(blocks, block, size + torch.float32.itemsize, dtype=torch.uint8)
    int8: Any = SimpleNamespace()
    int8.keys, int8.scales = keys_and_scales(cache)
    rows = keys.flatten(0, 1)
    Int8IndexCache.write(int8, rows[:, :ROPE], rows[:, ROPE:], torch.arange(len(rows)))
    return int8


def _paged(context: int, requests: int, block: int, size: int) -> tuple[Tensor, Tensor]:
    """Return a cache [blocks, block, size] and the blocks of each request, in random order."""
    table, blocks = block_table([context] * requests, generator(), block)
    return _normal(blocks, block, size), table


def _normal(*shape: int) -> Tensor:
    return normal(*shape, generator=generator(), dtype=torch.bfloat16)
