"""A dynamic cache that appends new tokens in place instead of copying all keys."""

from __future__ import annotations

import functools
from inspect import signature
from typing import Any

import torch
from custom_pypto_sparse_attention.ops import NPU_BLOCK_LIMIT
from torch import Tensor
from transformers import DynamicCache, cache_utils
from transformers.masking_utils import create_causal_mask

from .fallback import warn_once
from .pages import row_pitch
from .parts import Parts

# The name of the cache in `generate` and models. past_key_values warns since transformers 5.24.
CACHE = "cache" if "cache" in signature(create_causal_mask).parameters else "past_key_values"
DynamicIndexedLayer: Any = getattr(cache_utils, "DynamicIndexedLayer", object)


class GrowingCache(DynamicCache):  # type: ignore[misc]
    """transformers' DynamicCache for sparse attention models, without a copy of all keys each step.

    Each layer reserves memory for more tokens, and grows it by half when it is full. Pass it to
    ``generate`` or ``forward`` as ``past_key_values``; since transformers 5.24, as ``cache``.

    Args:
        config: the model's configuration, as for DynamicCache.
    """

    layers: list[Any]

    def __init__(self, config: Any) -> None:
        super().__init__(config=config)
        if (difference := _difference()) is not None:
            warn_once(difference, "GrowingCache copies all keys each step, as DynamicCache does")
            return
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


@functools.cache
def _difference() -> str | None:
    parts, name = Parts("transformers.cache_utils"), "DynamicIndexedLayer"
    parts.check(f"{name}.update", like=GrowingIndexedLayer.update)
    parts.check(f"{name}.update_indexer", like=GrowingIndexedLayer.update_indexer)
    parts.check(name)
    parts.check(f"{name}.lazy_initialization", 3)
    parts.check(f"{name}.lazy_initialization_indexer", 2)
    return parts.difference()


def append(held: Tensor, new: Tensor) -> Tensor:
    """Append new [B, .., S, D] to held [B, .., T, D], in held's memory if that has room.

    A tensor that this returned is the front of a longer row. The rest of the row is spare: tokens
    that were written there and cropped since are overwritten.
    """
    # Keys without rope have no values.
    if not new.shape[-1]:
        return torch.cat([held, new], -2) if held.dim() > 1 else new
    # A derivative may need what is held, also if only the queries have gradients. torch.compile
    # cannot trace a write beyond a view's end. torch.cat reports what does not fit.
    is_recorded = torch.is_grad_enabled() or held.requires_grad or torch.compiler.is_compiling()
    if is_recorded or (held.numel() and not _fits(held, new)):
        return torch.cat([held, new], -2) if held.numel() else new
    length = held.shape[-2] if held.numel() else 0
    total = length + new.shape[-2]
    if _capacity(held) < total:
        capacity = -(-(total + total // 2) // NPU_BLOCK_LIMIT) * NPU_BLOCK_LIMIT
        grown = new.new_empty((*new.shape[:-2], capacity, new.shape[-1]))
        if length:
            grown[..., :length, :] = held
        held = grown[..., :length, :]
    whole = held.as_strided((*held.shape[:-2], total, new.shape[-1]), held.stride())
    whole[..., length:, :] = new
    return whole


def _fits(held: Tensor, new: Tensor) -> bool:
    """Whether new differs from held only in the number of tokens."""
    is_alike = held.dtype == new.dtype and held.device == new.device
    return is_alike and held.shape[:-2] == new.shape[:-2] and held.shape[-1] == new.shape[-1]


def _capacity(held: Tensor) -> int:
    """Return the tokens for which each row of held's memory has room; 0 if it cannot be written."""
    if not held.numel() or (held.is_inference() and not torch.is_inference_mode_enabled()):
        return 0
    return row_pitch(held) or 0
