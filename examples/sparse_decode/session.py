"""A decode session: sequences over a text, their paged caches, and each step's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pydoc_data import topics

import torch
from torch import Tensor

from benchmarks.eager import FusedArguments, cached_rows
from examples.sparse_decode.layer import HISTORY, HiddenStates, Sizes, make_weights

SEED = 20250929
ROPE_BASE = 10000.0
TEXT = "\n".join(topics.topics.values()).encode()
"""The manual behind Python's `help()`: one token per byte."""


class PagedCache:
    """The three caches of one attention layer, in physical blocks allocated in shuffled order.

    A sequence gets another block only when its length crosses a block boundary.
    """

    def __init__(self, sizes: Sizes, generator: torch.Generator) -> None:
        self.block_size = sizes.block_size
        longest = [context + sizes.steps for context in sizes.lengths]
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


class Session:
    """Decodes a text at several places at once, teacher-forced: the next token is the text's."""

    def __init__(self, sizes: Sizes) -> None:
        generator = torch.Generator().manual_seed(SEED)
        self.sizes = sizes
        self._text = torch.frombuffer(bytearray(TEXT), dtype=torch.uint8).long()
        self.weights = make_weights(sizes, generator)
        self.hidden_states = HiddenStates(sizes.hidden, generator)
        self.cache = PagedCache(sizes, generator)
        spread = len(TEXT) // len(sizes.lengths)
        self.starts = [i * spread for i in range(len(sizes.lengths))]

    def states(self, sequence: int, start: int, stop: int) -> Tensor:
        """Return the hidden states [stop - start, H] of positions; the text is read in a loop."""
        begin = self.starts[sequence]
        positions = torch.arange(begin + start - HISTORY, begin + stop)
        return self.hidden_states(self._text[positions % len(TEXT)])

    def prefill(self, chunk: int = 4096) -> Iterator[int]:
        """Fill the caches with every context but its last token; yield the tokens done each time.

        Only what the caches hold is computed (latent, rope key, index key); the queries of a
        prompt's tokens are not needed to decode after it.
        """
        # fp32, as the hidden states are made.
        weights = {name: weight.float() for name, weight in self.weights.items()}
        for sequence, context in enumerate(self.sizes.lengths):
            for start in range(0, context - 1, chunk):
                stop = min(start + chunk, context - 1)
                slots = self.cache.grow(sequence, stop - start)
                angles = sin_cos(torch.arange(start, stop), self.sizes.rope)
                states = self.states(sequence, start, stop).float()
                rows = cached_rows(states, *angles, weights)
                self.cache.write(slots, *(each.bfloat16() for each in rows))
                yield stop - start

    def next_step(self) -> FusedArguments:
        """Lengthen every sequence by one token and return the fused op's arguments for it."""
        batch = range(len(self.sizes.lengths))
        positions = self.cache.lengths.long().unsqueeze(1)
        x = torch.stack([self.states(b, int(positions[b]), int(positions[b]) + 1) for b in batch])
        cache_index = torch.stack([self.cache.grow(b, 1) for b in batch])
        sin, cos = sin_cos(positions, self.sizes.rope)
        return FusedArguments(
            x=x,
            sin=sin,
            cos=cos,
            cache_index=cache_index.int(),
            block_table=self.cache.block_table,
            act_seqs=self.cache.lengths,
            **self.cache.caches,
            **self.weights,
        )


def sin_cos(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return (sin, cos) of rotary embedding, bf16 [*positions.shape, size], for int64 positions.

    The second half repeats the first, as the op's rotation of halves expects.
    """
    frequencies = ROPE_BASE ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = positions.double().unsqueeze(-1) * frequencies
    angles = torch.cat((angles, angles), -1)
    return angles.sin().bfloat16(), angles.cos().bfloat16()
