"""The rows of a lower instruction set than the machine's, from a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks import child, machine
from benchmarks.case import Planned, Targets
from benchmarks.cases import attention, indexer
from benchmarks.measurement import Bench
from benchmarks.peak import Peaks
from benchmarks.row import Row

ISA = "avx2"
FP32 = "float32"
BF16 = "bfloat16"
# They limit torch, too.
_VARIABLES = {
    "CUSTOM_PYPTO_CPU_ISA": ISA,
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}


def measure(threads: int) -> list[Row]:
    """Return the rows of a process whose kernels and whose torch are limited to AVX2."""
    return child.call(_rows, threads, **_VARIABLES)


def _rows(threads: int) -> list[Row]:
    torch.set_num_threads(threads)
    bench = Bench(Peaks(), machine.isas(), compiled=False, quick=False)
    return [bench.measure(planned) for planned in _cases()]


def _cases() -> Iterator[Planned]:
    for name, dtype, targets in (
        (FP32, torch.float32, Targets(fraction=0.8, eager=1)),
        (BF16, torch.bfloat16, Targets()),
    ):
        make = partial(indexer.case, 3, indexer.PUBLISHED, dtype)
        yield Planned(indexer.OP, name, make, targets=targets)
        # Without AVX-512, PyTorch multiplies bf16 fifty times slower than fp32.
        make = partial(attention.case, 1, [65536] * 4, dtype, slow_products=True)
        yield Planned(attention.OP, name, make, targets=targets)
