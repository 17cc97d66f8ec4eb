"""Paged caches with random contents: block tables, lengths, numbers."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 128


def generator() -> torch.Generator:
    """Return a generator that gives the same numbers in every run."""
    return torch.Generator().manual_seed(0)


def ragged(count: int, low: int, high: int) -> list[int]:
    """Return `count` random lengths, both ends included."""
    lengths: list[int] = torch.randint(low, high + 1, (count,), generator=generator()).tolist()
    return lengths


def block_table(lengths: list[int], generator: torch.Generator) -> tuple[Tensor, int]:
    """Return a table [B, M] of shuffled blocks that holds the lengths, and how many blocks."""
    needed = [-(-length // BLOCK) for length in lengths]
    free = torch.randperm(sum(needed), generator=generator).int()
    table = torch.full((len(lengths), max(needed)), -1, dtype=torch.int32)
    for row, blocks in zip(table, torch.split(free, needed), strict=True):
        row[: len(blocks)] = blocks
    return table, sum(needed)


def normal(*shape: int, generator: torch.Generator, dtype: torch.dtype, scale: float = 1) -> Tensor:
    """Return normal numbers, rounded to `dtype` in slices: an fp32 copy needs too much memory."""
    out = torch.empty(shape, dtype=dtype)
    for part in torch.split(out, max(1, 2**24 * len(out) // max(1, out.numel()))):
        part.copy_(torch.randn(part.shape, generator=generator).mul_(scale))
    return out


def visible(lengths: list[int], tokens: int, most: int | None = None) -> int:
    """Count the keys that the last `tokens` tokens of each sequence see, at most `most` a token."""
    seen = 0
    for length in lengths:
        for s in range(tokens):
            count = max(length - tokens + 1 + s, 0)
            seen += count if most is None else min(count, most)
    return seen
