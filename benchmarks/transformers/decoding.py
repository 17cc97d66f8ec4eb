"""Decodes with one implementation of a model's attention, in a process of its own."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto_testing.timing import process_memory
from torch import Tensor
from transformers import DynamicCache

from benchmarks.cases.paging import generator, normal
from benchmarks.transformers import models

OURS = "custom_pypto"
GROWING = "GrowingCache"
"""Our implementation, with a GrowingCache instead of a DynamicCache."""

_model: Any = None
_is_growing = False
_cache: Any = None


@dataclass(frozen=True)
class First:
    """What a first step took."""

    seconds: float
    bytes: int
    """The growth of the process's memory, beside weights and caches."""
    logits: list[float]


def start(model: str, dtype: str, way: str, threads: int) -> None:
    """Make the model."""
    global _model, _is_growing
    torch.set_num_threads(threads)
    if way in (OURS, GROWING):
        import custom_pypto_transformers  # noqa: F401
    _is_growing = way == GROWING
    _model = models.make(model, dtype, OURS if _is_growing else way)


@torch.inference_mode()
def begin(context: int) -> First:
    """Make a cache of random rows, and decode a first token after it."""
    global _cache
    config, random = _model.config, generator()

    def rows(*shape: int) -> Tensor:
        return normal(*shape, generator=random, dtype=_model.dtype)

    _cache = _new_cache()
    cached = context - 1
    _cache.update(
        rows(1, 1, cached, config.kv_lora_rank), rows(1, 1, cached, config.qk_rope_head_dim), 0
    )
    _cache.update_indexer(rows(1, cached, config.index_head_dim), 0)
    gc.collect()
    process_memory.trim_heap()
    logits: list[Tensor] = []
    begun = time.perf_counter()
    grown = process_memory.growth(lambda: logits.append(_decode()))
    return First(time.perf_counter() - begun, grown or 0, logits[0][0, -1].float().tolist())


@torch.inference_mode()
def step() -> None:
    """Decode a token. The cache grows by one: a few steps hardly change the time."""
    _decode()


def _decode() -> Tensor:
    logits: Tensor = _model(torch.ones(1, 1, dtype=torch.int64), None, None, _cache).logits
    return logits


def _new_cache() -> Any:
    if _is_growing:
        from custom_pypto_transformers import GrowingCache

        return GrowingCache(_model.config)
    return DynamicCache(config=_model.config)
