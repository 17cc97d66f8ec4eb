"""Fixtures of the tests of the indexer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from custom_pypto_lightning_indexer.samples import Sizes


@pytest.fixture
def indexer() -> Callable[..., torch.Tensor]:
    return torch.ops.custom_pypto.npu_lightning_indexer_pto


@pytest.fixture
def arguments() -> dict[str, Any]:
    """A small call that is right: tests change one thing."""
    generator = torch.Generator().manual_seed(0)
    return {
        "query": torch.randn(2, 3, 4, 8, generator=generator),
        "key": torch.randn(6, 5, 2, 8, generator=generator),
        "weights": torch.randn(2, 3, 4, generator=generator),
        "actual_seq_lengths_key": torch.tensor([12, 7]),
        "block_table": torch.tensor([[3, 0, 5], [1, 4, -1]], dtype=torch.int32),
        "sparse_count": 4,
    }


@pytest.fixture
def random_sizes() -> Callable[..., Sizes]:
    return _random_sizes


def _random_sizes(seed: int, dtype: torch.dtype = torch.bfloat16) -> Sizes:
    """Draw the sizes of a batch."""

    def pick(*choices: int) -> int:
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    generator = torch.Generator().manual_seed(seed)
    batch = pick(1, 2, 5)
    key_heads = pick(1, 1, 2, 3)
    return Sizes(
        key_lengths=torch.randint(0, pick(3, 70, 500), (batch,), generator=generator).tolist(),
        query_tokens=pick(1, 2, 9, 17),
        heads=key_heads * pick(1, 3, 8, 16, 37, 64, 80),
        key_heads=key_heads,
        depth=pick(1, 2, 7, 16, 64, 65, 128, 130),
        block_size=pick(1, 3, 16, 64, 128),
        dtype=dtype,
        weights_dtype=torch.float32 if pick(0, 1) else None,
        lengths_dtype=torch.int64 if pick(0, 1) else torch.int32,
        seed=seed,
    )
