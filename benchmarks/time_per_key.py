"""The indexer's time per key, from 8K to 256K keys."""

from __future__ import annotations

import torch

from benchmarks.case import Call
from benchmarks.cases.indexer import random_inputs
from benchmarks.cases.paging import block_table, generator
from benchmarks.measurement import Bench

BATCH = 4
LENGTHS = tuple(8192 << i for i in range(6))


def measure(bench: Bench) -> dict[int, float]:
    """Time decoding one token of each of four sequences.

    Returns the seconds per key, by the number of keys of a sequence.
    """
    random = generator()
    table, blocks = block_table([LENGTHS[-1]] * BATCH, random)
    inputs = random_inputs(BATCH, 1, blocks, random)
    op = torch.ops.custom_pypto.npu_lightning_indexer_pto

    def call(length: int) -> Call:
        act = torch.full((BATCH,), length, dtype=torch.int32)
        return lambda: op(*inputs, actual_seq_lengths_key=act, block_table=table)

    with torch.inference_mode():
        times = bench.times({str(length): call(length) for length in LENGTHS})
    return {length: times[str(length)] / (BATCH * length) for length in LENGTHS}
