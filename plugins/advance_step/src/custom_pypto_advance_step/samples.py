"""Sample inputs of npu_advance_step_flashattn, besides those drawn from ops.toml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor


def advance_step(device: str) -> Iterator[SampleInput]:
    """Calls as serving engines make them; what NPU kernels do not take is for the CPU."""
    longer = call(device, num_seqs=8, num_queries=3, columns=9)
    yield replace(call(device, num_seqs=8, num_queries=3, name="padded"), resized=longer)
    yield call(device, num_seqs=3, num_queries=2, block_size=1, name="blocks-of-one-token")
    yield call(device, num_seqs=64, num_queries=50, first=2**31 - 2, name="from-2-to-the-31")
    yield call(device, num_seqs=257, num_queries=200, block_size=128, name="many")
    if device == "cpu":
        yield call(device, num_seqs=4, num_queries=4, name="full")
        yield call(device, num_seqs=4, num_queries=0, name="padding-only")
        yield call(device, num_seqs=5, num_queries=4, dtype=torch.int32, name="int32")


def call(
    device: str,
    *,
    num_seqs: int,
    num_queries: int,
    columns: int = 5,
    block_size: int = 16,
    first: int = 0,
    dtype: torch.dtype = torch.int64,
    name: str = "",
) -> SampleInput:
    """A step; a block table has so many columns, and `first` is the least of its block numbers."""
    generator = torch.Generator().manual_seed(num_seqs)

    def integers(*shape: int, low: int = 0, high: int = 100) -> Tensor:
        return torch.randint(low, high, shape, generator=generator, device="cpu").to(device, dtype)

    return SampleInput(
        (
            integers(num_seqs),
            integers(num_queries, 1, high=30000),
            integers(num_seqs),
            integers(num_seqs, high=columns * block_size),
            integers(num_seqs),
            integers(num_seqs, columns, low=first, high=first + 1000),
            num_seqs,
            num_queries,
            block_size,
        ),
        name=name,
    )
