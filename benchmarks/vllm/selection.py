"""The selection of one layer of DeepSeek-V3.2 in a decode step; the values are random."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto_sparse_attention.ops import TOP_K
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from custom_pypto_testing.timing.interleaved import Quartiles, Timed, time_interleaved
from torch import Tensor

from benchmarks.case import block_table, generator, normal


def measure(
    context: int, requests: int, least: int, seconds: float
) -> tuple[dict[str, Quartiles], float]:
    """Time the selection from keys of bf16 and of int8.

    Also returns which share of the selected positions is selected from both.
    """
    # They import vLLM, which an engine's process configures first.
    from custom_pypto_vllm.index_cache import IndexCache, Int8IndexCache
    from custom_pypto_vllm.metadata import StepMetadata
    from custom_pypto_vllm.platform import BLOCK_SIZE

    table, blocks = block_table([context] * requests, generator(), BLOCK_SIZE)
    keys = _normal(blocks, BLOCK_SIZE, V32.index_size)
    last = context - 1
    step = StepMetadata(
        num_actual_tokens=requests,
        query_bounds=torch.arange(requests + 1, dtype=torch.int32),
        seq_lens=torch.full((requests,), context, dtype=torch.int32),
        block_table=table,
        slot_mapping=table[:, last // BLOCK_SIZE].long() * BLOCK_SIZE + last % BLOCK_SIZE,
        num_decodes=requests,
        num_decode_tokens=requests,
    )
    query = _normal(requests, V32.index_heads, V32.index_size)
    given = (query, _normal(requests, V32.index_heads), step, TOP_K)
    index: Any = SimpleNamespace(kv_cache=keys)
    int8 = _int8_cache(keys)
    calls: dict[str, Callable[[], Tensor]] = {
        "bf16": lambda: IndexCache.select(index, *given),
        "int8": lambda: Int8IndexCache.select(int8, *given),
    }
    pairs = zip(*(call().tolist() for call in calls.values()), strict=True)
    shares = [len({*exact} & {*coarse}) / len({*exact}) for exact, coarse in pairs]
    timed = {name: Timed(call) for name, call in calls.items()}
    times = time_interleaved(timed, seconds, least=least, most=50)
    return times, sum(shares) / len(shares)


def _int8_cache(keys: Tensor) -> Any:
    """Return what Int8IndexCache has once `keys` are written to it."""
    from custom_pypto_vllm.index_cache import Int8IndexCache, keys_and_scales

    blocks, block, size = keys.shape
    cache = torch.empty(blocks, block, size + torch.float32.itemsize, dtype=torch.uint8)
    int8: Any = SimpleNamespace()
    int8.keys, int8.scales = keys_and_scales(cache)
    rows = keys.flatten(0, 1)
    Int8IndexCache.write(int8, rows[:, : V32.rope], rows[:, V32.rope :], torch.arange(len(rows)))
    return int8


def _normal(*shape: int) -> Tensor:
    return normal(*shape, generator=generator(), dtype=torch.bfloat16)
