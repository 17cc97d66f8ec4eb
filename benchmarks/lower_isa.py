"""The rows of a lower instruction set than the machine's, from a process of its own.

``CUSTOM_PYPTO_CPU_ISA=avx2 python -m benchmarks.lower_isa 2`` prints rows as JSON.
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
from benchmarks.case import Planned, Targets
from benchmarks.cases import attention, indexer
from benchmarks.measurement import Bench
from benchmarks.peak import Peaks
from benchmarks.row import Row

ISA = "avx2"
FP32 = "float32"
BF16 = "bfloat16"
# Limit torch too.
_TORCH_LIMITS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}


def measure(threads: int) -> list[Row]:
    """Return the rows of a process whose kernels and whose torch are limited to AVX2."""
    environment = {**os.environ, **_TORCH_LIMITS, "CUSTOM_PYPTO_CPU_ISA": ISA}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.lower_isa", str(threads)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    return [Row(**{**row, "targets": Targets(**row["targets"])}) for row in rows]


def _cases() -> list[Planned]:
    planned = []
    for name, dtype, targets in (
        (FP32, torch.float32, Targets(fraction=0.8, eager=1)),
        (BF16, torch.bfloat16, Targets()),
    ):
        make = partial(indexer.case, 32, 3, indexer.PUBLISHED, dtype)
        planned.append(Planned(indexer.OP, name, make, targets=targets))
        # Without AVX-512, PyTorch multiplies bf16 fifty times slower than fp32.
        make = partial(attention.case, 1, [65536] * 4, dtype, slow_products=True)
        planned.append(Planned(attention.OP, name, make, targets=targets))
    return planned


def _main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    bench = Bench(Peaks(), machine.isas(), compiled=False, quick=False)
    print(json.dumps([asdict(bench.measure(planned)) for planned in _cases()]))


if __name__ == "__main__":
    _main()
