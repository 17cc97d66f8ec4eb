"""Paged caches and their block table, as a serving engine keeps them."""

from __future__ import annotations

import torch
from torch import Tensor

from examples.sparse_decode.sizes import Sizes


class PagedCache:
    """The three caches of one attention layer, in physical blocks allocated in shuffled order.

    A sequence gets another block only when its length crosses a block boundary.
    """

    def __init__(self, sizes: Sizes, generator: torch.Generator) -> None:
        self.block_size = sizes.block_size
        longest = [context + sizes.steps for context in sizes.contexts]
        blocks = [-(-length // self.block_size) for length in longest]
        total = sum(blocks)
        self._free = torch.randperm(total, generator=generator).tolist()
        self._lengths = [0] * len(blocks)
        self.block_table = torch.full((len(blocks), max(blocks)), -1, dtype=torch.int32)
        self.caches = {
            name: torch.zeros(total, self.block_size, 1, size, dtype=torch.bfloat16)
            for name, size in (
                ("kv_cache", sizes.latent),
                ("kr_cache", sizes.rope),
                ("index_k_cache", sizes.index_size),
            )
        }
        """By their names in the schema of npu_sparse_attention_pto."""

    @property
    def lengths(self) -> Tensor:
        """The sequences' lengths, int32 [B]."""
        return torch.tensor(self._lengths, dtype=torch.int32)

    @property
    def used_blocks(self) -> int:
        """How many physical blocks belong to a sequence."""
        return int((self.block_table >= 0).sum())

    def grow(self, sequence: int, tokens: int) -> Tensor:
        """Lengthen a sequence; return the slots of its new tokens, int64 [tokens]."""
        start = self._lengths[sequence]
        stop = start + tokens
        for logical in range(-(-start // self.block_size), -(-stop // self.block_size)):
            self.block_table[sequence, logical] = self._free.pop()
        self._lengths[sequence] = stop
        positions = torch.arange(start, stop)
        blocks = self.block_table[sequence].long()[positions // self.block_size]
        return blocks * self.block_size + positions % self.block_size

    def read(self, slots: Tensor) -> tuple[Tensor, ...]:
        """Return copies of the three caches' rows at slots."""
        return tuple(cache.flatten(0, 2)[slots] for cache in self.caches.values())

    def write(self, slots: Tensor, *rows: Tensor) -> None:
        """Write one row per slot into each of the three caches."""
        for cache, new in zip(self.caches.values(), rows, strict=True):
            cache.flatten(0, 2)[slots] = new
