"""The memory of the indexer beside its inputs and outputs, measured in a process of its own.

``python -m benchmarks.indexer_memory`` prints bytes.
"""

from __future__ import annotations

import subprocess
import sys

import custom_pypto.core  # noqa: F401
import torch
from torch import Tensor

from benchmarks import process_memory
from benchmarks.cases.indexer import HEADS, SIZE
from benchmarks.cases.paging import BLOCK, generator, normal

BATCH = 32
KEYS = 262144


def measure(threads: int) -> int | None:
    """Return the bytes at 32 x 256K keys; None: unknown."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.indexer_memory", str(threads)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer = done.stdout.split()[-1]
    return None if answer == "None" else int(answer)


def _beyond_inputs_and_outputs() -> int | None:
    """Run one call, the first of the process: its threads' stacks are counted, too."""
    random = generator()
    # The scratch memory does not depend on whether two sequences share blocks, which is allowed.
    blocks = KEYS // BLOCK
    key = normal(blocks, BLOCK, 1, SIZE, generator=random, dtype=torch.bfloat16)
    query = normal(BATCH, 1, HEADS, SIZE, generator=random, dtype=torch.bfloat16)
    weights = normal(BATCH, 1, HEADS, generator=random, dtype=torch.bfloat16)
    act = torch.full((BATCH,), KEYS, dtype=torch.int32)
    table = torch.stack([torch.randperm(blocks, generator=random) for _ in range(BATCH)]).int()
    out: list[Tensor] = []

    def call() -> None:
        op = torch.ops.custom_pypto.npu_lightning_indexer_pto
        out.append(op(query, key, weights, actual_seq_lengths_key=act, block_table=table))

    grown = process_memory.growth(call)
    return None if grown is None else grown - out[0].numel() * out[0].element_size()


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    print(_beyond_inputs_and_outputs())
