"""A dynamic cache that writes new tokens behind the old ones instead of copying all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicIndexedLayer

from .pages import NPU_LARGEST_PAGE


class GrowingCache(DynamicCache):  # type: ignore[misc]
    """transformers' DynamicCache for sparse attention models, without a copy of all keys each step.

    Each of its layers keeps its tensors in memory with room for more; when that is full, they move
    to one half as large again. Give it to ``generate`` or ``forward`` as ``past_key_values``.

    Args:
        config: the model's configuration, as for DynamicCache.
    """

    layers: list[Any]

    def __init__(self, config: Any) -> None:
        super().__init__(config=config)
        self.layers = [
            GrowingIndexedLayer() if type(layer) is DynamicIndexedLayer else layer
            for layer in self.layers
        ]


class GrowingIndexedLayer(DynamicIndexedLayer):  # type: ignore[misc]
    """A layer of GrowingCache."""

    keys: Tensor
    values: Tensor
    indexer_keys: Tensor

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append [B, 1, S, L] and [B, 1, S, R]; returns all [B, 1, T, L] and [B, 1, T, R]."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys = append(self.keys, key_states)
        self.values = append(self.values, value_states)
        return self.keys, self.values

    def update_indexer(self, indexer_key_states: Tensor) -> Tensor:
        """Append index keys [B, S, D]; returns all [B, T, D]."""
        if not self.is_indexer_initialized:
            self.lazy_initialization_indexer(indexer_key_states)
        self.indexer_keys = append(self.indexer_keys, indexer_key_states)
        return self.indexer_keys


def append(held: Tensor, new: Tensor) -> Tensor:
    """held [B, .., T, D] followed by new [B, .., S, D], in held's memory if that has room.

    Tensors that are the front of a longer row, as this returns them, have room behind them: what
    was written there before, and cropped since, is overwritten.
    """
    has_gradients = held.requires_grad or new.requires_grad
    # torch.compile cannot trace a write behind a view's end; what does not fit is torch's to judge.
    if has_gradients or torch.compiler.is_compiling() or (held.numel() and not _fits(held, new)):
        return torch.cat([held, new], -2) if held.numel() else new
    length = held.shape[-2] if held.numel() else 0
    total = length + new.shape[-2]
    if _room(held) < total:
        capacity = -(-(total + total // 2) // NPU_LARGEST_PAGE) * NPU_LARGEST_PAGE
        grown = new.new_empty((*new.shape[:-2], capacity, new.shape[-1]))
        if length:
            grown[..., :length, :] = held
        held = grown[..., :length, :]
    whole = held.as_strided((*held.shape[:-2], total, new.shape[-1]), held.stride())
    whole[..., length:, :] = new
    return whole


def _fits(held: Tensor, new: Tensor) -> bool:
    """Whether new differs from held in the number of tokens only."""
    is_alike = held.dtype == new.dtype and held.device == new.device
    return is_alike and held.shape[:-2] == new.shape[:-2] and held.shape[-1] == new.shape[-1]


def _room(held: Tensor) -> int:
    """How many tokens each row of held's memory takes; 0 if it cannot be written."""
    if not held.numel() or (held.is_inference() and not torch.is_inference_mode_enabled()):
        return 0
    size, rows, pitch = held.shape[-1], held.shape[0], held.stride(0)
    # A copied single row keeps the long stride, not the memory.
    end = held.untyped_storage().nbytes() // held.element_size() - held.storage_offset()
    return int(min(pitch, end - (rows - 1) * pitch) // size)
