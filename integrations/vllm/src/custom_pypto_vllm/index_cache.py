"""The paged cache of index keys of a layer, and the selection from it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .attention import IndexerBackend
from .cache_rows import write_rows
from .metadata import StepMetadata
from .names import DeepseekV32IndexerCache, get_current_vllm_config
from .options import index_cache_kind

_INT8_MAX = 127
_SCALE_BYTES = torch.float32.itemsize


class IndexCache(DeepseekV32IndexerCache):  # type: ignore[misc]
    """Keys in the model's dtype, [blocks, block_size, size]."""

    selected: Tensor  # positions, [tokens, top-k]; one for all layers

    def get_attn_backend(self) -> type[IndexerBackend]:
        """Return how vLLM pages the cache."""
        return IndexerBackend

    def write(self, rotated: Tensor, plain: Tensor, slots: Tensor) -> None:
        """Write keys, given as two parts [tokens, ..], to their slots."""
        write_rows(self.kv_cache, slots, rotated, plain)

    def select(self, query: Tensor, weights: Tensor, step: StepMetadata, count: int) -> Tensor:
        """Return the positions [tokens, count] that each query [tokens, heads, size] selects."""
        op = torch.ops.custom_pypto.npu_lightning_indexer_pto
        return _select(op, query, self.kv_cache.unsqueeze(2), weights, step=step, count=count)


class Int8IndexCache(IndexCache):
    """Keys of 8 bits with a scale each. A block holds its keys, and its scales after them."""

    scales: Tensor

    def __init__(self, size: int, prefix: str, cache_config: Any) -> None:
        super().__init__(size + _SCALE_BYTES, torch.uint8, prefix, cache_config)

    def bind_kv_cache(self, kv_cache: Tensor) -> None:
        """Cut keys and scales from the memory that vLLM has allocated."""
        super().bind_kv_cache(kv_cache)
        self.keys, self.scales = keys_and_scales(self.kv_cache)

    def write(self, rotated: Tensor, plain: Tensor, slots: Tensor) -> None:
        """Quantise keys, and write them and their scales to their slots."""
        keys, scales = quantise(torch.cat((rotated, plain), -1))
        write_rows(self.keys, slots, keys)
        write_rows(self.scales, slots, scales.unsqueeze(-1))

    def select(self, query: Tensor, weights: Tensor, step: StepMetadata, count: int) -> Tensor:
        """Return the positions [tokens, count] that each query [tokens, heads, size] selects."""
        query, scales = quantise(query)
        op, keys = torch.ops.custom_pypto.npu_quant_lightning_indexer, self.keys.unsqueeze(2)
        given = (query, keys, weights, scales, self.scales, 0, 0)
        return _select(op, *given, step=step, count=count)


def _select(op: Any, *tensors: Any, step: StepMetadata, count: int) -> Tensor:
    positions: Tensor = op(
        *tensors,
        actual_seq_lengths_query=step.query_ends,
        actual_seq_lengths_key=step.seq_lens,
        block_table=step.block_table,
        layout_query="TND",
        layout_key="PA_BSND",
        sparse_count=count,
    )
    return positions.squeeze(1)


def keys_and_scales(cache: Tensor) -> tuple[Tensor, Tensor]:
    """Return views of a cache of bytes [blocks, block_size, size + 4].

    They are int8 keys [blocks, block_size, size] and fp32 scales [blocks, block_size, 1].
    """
    blocks, block_size, row = cache.shape
    size = row - _SCALE_BYTES
    flat = cache.view(blocks, -1)
    keys, scales = flat[:, : block_size * size], flat[:, block_size * size :]
    return (
        keys.view(torch.int8).view(blocks, block_size, size),
        scales.view(torch.float32).unsqueeze(-1),
    )


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 values and fp32 scales, one for the last dimension; zeros have the scale 0."""
    x = x.float()
    scales = x.abs().amax(-1) / _INT8_MAX
    factors = torch.where(scales > 0, scales.reciprocal(), 0)
    return (x * factors.unsqueeze(-1)).round_().to(torch.int8), scales


def make_index_cache(size: int, indexer: Any) -> IndexCache:
    """Make the cache of a layer in the place of vLLM's, whose fp8 rows no op reads."""
    config = get_current_vllm_config()
    old = indexer.k_cache
    del config.compilation_config.static_forward_context[old.prefix]
    cache: IndexCache
    if index_cache_kind(config) == "int8":
        cache = Int8IndexCache(size, old.prefix, old.cache_config)
    else:
        cache = IndexCache(size, config.model_config.dtype, old.prefix, old.cache_config)
    cache.selected = indexer.topk_indices_buffer
    return cache
