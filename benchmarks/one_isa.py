"""The kernels at a lower instruction set than the machine's, in a process of its own.

``CUSTOM_PYPTO_CPU_ISA=avx2 python -m benchmarks.one_isa 2`` prints rows as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from functools import partial

import torch

from benchmarks import machine
from benchmarks.case import Planned, Reach
from benchmarks.cases import attention, indexer
from benchmarks.measurement import Bench
from benchmarks.peak import Peaks
from benchmarks.row import Row

ISA = "avx2"
FP32 = "float32"
BF16 = "bfloat16"
# torch, too, shall find a machine without AVX-512.
_TORCH_LIMITS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}


def measure(threads: int) -> list[Row]:
    """Return the rows of a process whose kernels and whose torch are limited to AVX2."""
    environment = {**os.environ, **_TORCH_LIMITS, "CUSTOM_PYPTO_CPU_ISA": ISA}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.one_isa", str(threads)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    return [Row(**{**row, "reach": Reach(**row["reach"])}) for row in rows]


def _cases() -> list[Planned]:
    planned = []
    for name, dtype, reach in (
        (FP32, torch.float32, Reach(fraction=0.8, eager=1)),
        (BF16, torch.bfloat16, Reach()),
    ):
        make = partial(indexer.case, 32, 3, indexer.PUBLISHED, dtype)
        planned.append(Planned(indexer.OP, name, make, reach=reach))
        # Without AVX-512, PyTorch takes fifty times as long for products of bf16 as of fp32.
        make = partial(attention.case, 1, [65536] * 4, dtype, slow_products=True)
        planned.append(Planned(attention.OP, name, make, reach=reach))
    return planned


def _main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    bench = Bench(Peaks(), machine.isas(), compiled=False, quick=False)
    print(json.dumps([asdict(bench.measure(planned)) for planned in _cases()]))


if __name__ == "__main__":
    _main()
