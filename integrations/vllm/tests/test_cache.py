"""Caches are written in place, and int8 keys select nearly what their originals do."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

BLOCKS, BLOCK_SIZE, SIZE = 5, 16, 128


@pytest.fixture
def caches(vllm: Any) -> Any:
    """Return the module of caches, over a base class that binds memory as vLLM's does."""

    class DeepseekV32IndexerCache(torch.nn.Module):
        def __init__(self, head_dim: int, dtype: torch.dtype, prefix: str, config: Any) -> None:
            super().__init__()
            self.head_dim, self.dtype = head_dim, dtype
            self.prefix, self.cache_config = prefix, config

        def bind_kv_cache(self, kv_cache: torch.Tensor) -> None:
            self.kv_cache = kv_cache.squeeze(1)

    module = vllm.module("vllm.model_executor.models.deepseek_v2")
    module.DeepseekV32IndexerCache = DeepseekV32IndexerCache
    vllm.module("vllm.v1.attention.backend").MLAAttentionImpl = object
    import custom_pypto_vllm.index_cache as caches

    return caches


def bind(cache: Any) -> Any:
    # Memory of a larger buffer, as where several layers share one.
    whole = torch.zeros(BLOCKS, 2, BLOCK_SIZE, cache.head_dim, dtype=cache.dtype)
    cache.bind_kv_cache(whole[:, :1])
    return whole


def make(caches: Any, kind: str) -> Any:
    if kind == "int8":
        return caches.Int8IndexCache(SIZE, "layer", None)
    return caches.IndexCache(SIZE, getattr(torch, kind), "layer", None)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
def test_written_keys_are_selected(caches: Any, kind: str) -> None:
    """Two sequences: 40 keys in blocks 4, 1, 3 and 20 in blocks 2, 0; one query each."""
    cache = make(caches, kind)
    bind(cache)
    dtype = torch.float32 if kind == "int8" else cache.dtype
    keys = random(60, SIZE).to(dtype)
    blocks = [[4, 1, 3], [2, 0, 0]]
    slots = [
        row[token // BLOCK_SIZE] * BLOCK_SIZE + token % BLOCK_SIZE
        for row, length in zip(blocks, (40, 20), strict=True)
        for token in range(length)
    ]
    cache.write(keys[:, :32], keys[:, 32:], torch.tensor(slots))
    query, weights = random(2, 64, SIZE, seed=1).to(dtype), random(2, 64, seed=2).abs().to(dtype)
    integers = {"query_ends": [1, 2], "seq_lens": [40, 20], "block_table": blocks}
    step = {name: torch.tensor(each, dtype=torch.int32) for name, each in integers.items()}
    found = cache.select(query, weights, SimpleNamespace(**step), 16)
    for row, mine in enumerate((keys[:40], keys[40:])):
        scores = weights[row].float() @ (query[row].float() @ mine.float().T).relu()
        wanted = set(scores.topk(16).indices.tolist())
        assert len(wanted & set(found[row].tolist())) >= (15 if kind == "int8" else 16)


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_padding_is_written_to_the_block_of_no_request(caches: Any, kind: str) -> None:
    cache = make(caches, kind)
    whole = bind(cache)
    cache.write(random(3, 32), random(3, SIZE - 32), torch.tensor([-1, 20, -1]))
    assert whole[0].any()
    assert whole[1].any()
    assert not whole[2:].any()


def test_quantised_rows_use_the_range_of_int8(caches: Any) -> None:
    rows = random(4, SIZE)
    rows[2] = 0
    values, scales = caches.quantise(rows)
    assert values.abs().amax(-1).tolist() == [127, 127, 0, 127]
    assert scales[2] == 0
    assert (values * scales[:, None] - rows).abs().max() < 0.02
