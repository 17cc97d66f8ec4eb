"""The indexer's time per key, from 8K to 256K keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.case import Call
from benchmarks.cases.indexer import HEADS, SIZE
from benchmarks.cases.paging import BLOCK, block_table, generator, normal
from benchmarks.measurement import Bench

BATCH = 4
LENGTHS = tuple(8192 << i for i in range(6))


@dataclass(frozen=True)
class TimePerKey:
    """Seconds per key, by the number of keys of a sequence."""

    seconds: dict[int, float]

    @property
    def spread(self) -> float:
        """The longest time per key over the shortest, minus 1."""
        return max(self.seconds.values()) / min(self.seconds.values()) - 1


def measure(bench: Bench) -> TimePerKey:
    """Time decoding one token of each of four sequences, from 8K to 256K keys each."""
    random = generator()
    table, blocks = block_table([LENGTHS[-1]] * BATCH, random)
    key = normal(blocks, BLOCK, 1, SIZE, generator=random, dtype=torch.bfloat16)
    query = normal(BATCH, 1, HEADS, SIZE, generator=random, dtype=torch.bfloat16)
    weights = normal(BATCH, 1, HEADS, generator=random, dtype=torch.bfloat16)
    op = torch.ops.custom_pypto.npu_lightning_indexer_pto

    def call(length: int) -> Call:
        act = torch.full((BATCH,), length, dtype=torch.int32)
        return lambda: op(query, key, weights, actual_seq_lengths_key=act, block_table=table)

    with torch.inference_mode():
        times = bench.times({str(length): call(length) for length in LENGTHS})
    return TimePerKey({length: times[str(length)] / (BATCH * length) for length in LENGTHS})
