"""Fixtures of the tests of the indexer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch


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
