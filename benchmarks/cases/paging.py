"""Paged caches with random contents: block tables, lengths, numbers."""

from __future__ import annotations

import sys

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

BLOCK = 128


def generator() -> torch.Generator:
    """Return a generator that gives the same numbers in every run."""
    return torch.Generator().manual_seed(0)


def ragged(count: int, low: int, high: int) -> list[int]:
    """Return `count` random lengths, both ends included."""
    lengths: list[int] = torch.randint(low, high + 1, (count,), generator=generator()).tolist()
    return lengths


def block_table(
    lengths: list[int], generator: torch.Generator, block: int = BLOCK
) -> tuple[Tensor, int]:
    """Return a table [B, M] of shuffled blocks that holds the lengths, and how many blocks."""
    needed = [-(-length // block) for length in lengths]
    free = torch.randperm(sum(needed), generator=generator).int()
    rows = list(torch.split(free, needed))
    return pad_sequence(rows, batch_first=True, padding_value=-1), sum(needed)


def normal(*shape: int, generator: torch.Generator, dtype: torch.dtype, scale: float = 1) -> Tensor:
    """Return normal numbers, rounded to `dtype` in slices: an fp32 copy needs too much memory."""
    out = torch.empty(shape, dtype=dtype)
    for part in torch.split(out, max(1, 2**24 * len(out) // max(1, out.numel()))):
        part.copy_(torch.randn(part.shape, generator=generator).mul_(scale))
    return out


def visible(lengths: list[int], tokens: int, most: int = sys.maxsize) -> int:
    """Count the keys that the last `tokens` tokens of each sequence see, at most `most` a token."""
    seen = (max(length - s, 0) for length in lengths for s in range(tokens))
    return sum(min(count, most) for count in seen)
