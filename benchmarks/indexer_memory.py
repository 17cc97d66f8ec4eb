"""The memory of the indexer beside its inputs and outputs, measured in a process of its own.

``python -m benchmarks.indexer_memory 2`` prints bytes.
"""

from __future__ import annotations

import json
import sys

import custom_pypto.core  # noqa: F401
import torch
from torch import Tensor

from benchmarks import child, process_memory
from benchmarks.cases.indexer import random_inputs
from benchmarks.cases.paging import BLOCK, generator

BATCH = 32
KEYS = 262144


def measure(threads: int) -> int | None:
    """Return the bytes at 32 x 256K keys; None: unknown."""
    grown: int | None = child.run("benchmarks.indexer_memory", threads)
    return grown


def _beyond_inputs_and_outputs() -> int | None:
    """Run one call, the first of the process: its threads' stacks are counted, too."""
    random = generator()
    # The scratch memory does not depend on whether two sequences share blocks, which is allowed.
    blocks = KEYS // BLOCK
    inputs = random_inputs(BATCH, 1, blocks, random)
    act = torch.full((BATCH,), KEYS, dtype=torch.int32)
    table = torch.stack([torch.randperm(blocks, generator=random) for _ in range(BATCH)]).int()
    out: list[Tensor] = []

    def call() -> None:
        op = torch.ops.custom_pypto.npu_lightning_indexer_pto
        out.append(op(*inputs, actual_seq_lengths_key=act, block_table=table))

    grown = process_memory.growth(call)
    return None if grown is None else grown - out[0].numel() * out[0].element_size()


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    print(json.dumps(_beyond_inputs_and_outputs()))
