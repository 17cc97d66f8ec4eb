"""The indexer at long contexts: its time per key, and its memory beside inputs and outputs."""

from __future__ import annotations

import custom_pypto.core  # noqa: F401  (makes the ops in a process of its own)
import torch
from torch import Tensor

from benchmarks import child, process_memory
from benchmarks.case import Call
from benchmarks.cases.indexer import random_inputs
from benchmarks.cases.paging import BLOCK, block_table, generator
from benchmarks.measurement import Bench

TIMED_BATCH = 4
LENGTHS = tuple(8192 << i for i in range(6))
LARGE_BATCH = 32
KEYS = LENGTHS[-1]


def time_per_key(bench: Bench) -> dict[int, float]:
    """Time decoding one token of each of four sequences, from 8K to 256K keys.

    Returns the seconds per key, by the number of keys of a sequence.
    """
    random = generator()
    table, blocks = block_table([KEYS] * TIMED_BATCH, random)
    inputs = random_inputs(TIMED_BATCH, 1, blocks, random)
    op = torch.ops.custom_pypto.npu_lightning_indexer_pto

    def call(length: int) -> Call:
        act = torch.full((TIMED_BATCH,), length, dtype=torch.int32)
        return lambda: op(*inputs, actual_seq_lengths_key=act, block_table=table)

    with torch.inference_mode():
        times = bench.times({str(length): call(length) for length in LENGTHS})
    return {length: times[str(length)] / (TIMED_BATCH * length) for length in LENGTHS}


def memory(threads: int) -> int | None:
    """Return the bytes beside inputs and outputs at 32 x 256K keys; None: unknown."""
    return child.call(_memory_of_the_first_call, threads)


def _memory_of_the_first_call(threads: int) -> int | None:
    """Run one call, the first of the process: its threads' stacks are counted, too."""
    torch.set_num_threads(threads)
    random = generator()
    # The scratch memory does not depend on whether two sequences share blocks, which is allowed.
    blocks = KEYS // BLOCK
    inputs = random_inputs(LARGE_BATCH, 1, blocks, random)
    act = torch.full((LARGE_BATCH,), KEYS, dtype=torch.int32)
    rows = [torch.randperm(blocks, generator=random) for _ in range(LARGE_BATCH)]
    table = torch.stack(rows).int()
    out: list[Tensor] = []

    def call() -> None:
        op = torch.ops.custom_pypto.npu_lightning_indexer_pto
        out.append(op(*inputs, actual_seq_lengths_key=act, block_table=table))

    grown = process_memory.growth(call)
    return None if grown is None else grown - out[0].nbytes
