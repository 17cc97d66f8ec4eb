"""The cases of add_custom: small ones, which time the dispatch, and ones that memory limits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.case import Case, Planned, work

OP = "add_custom"


def cases() -> Iterator[Planned]:
    """Yield the cases, small ones first."""
    yield Planned(OP, "[16] float32", _small, quick=True)
    yield Planned(OP, "[16] float32, autograd on", _small, quick=True, inference=False)
    yield Planned(OP, "[8, 2048] float16", partial(_add, (8, 2048), torch.float16))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for threads in (1, None):
            size = f"[4096, 7168] {str(dtype).removeprefix('torch.')}" + (
                ", one thread" if threads else ""
            )
            make = partial(_add, (4096, 7168), dtype)
            quick = dtype == torch.bfloat16 and not threads
            yield Planned(OP, size, make, quick=quick, threads=threads)
    make = partial(_add, (4096, 7168), torch.float32, transposed=2)
    yield Planned(OP, "[4096, 7168] float32, both transposed", make)
    make = partial(_add, (4096, 7168), torch.float32, transposed=1)
    yield Planned(OP, "[4096, 7168] float32, one transposed", make)


def _small() -> Case:
    a, b = torch.ones(2, 16)
    op = torch.ops.custom_pypto.add_custom
    return Case(lambda: op(a, b), lambda base: lambda: base.add(a, b), dtype=torch.float32)


def _add(shape: tuple[int, ...], dtype: torch.dtype, transposed: int = 0) -> Case:
    generator = torch.Generator().manual_seed(0)
    pair = [
        torch.randn(shape[::-1] if i < transposed else shape, generator=generator).to(dtype)
        for i in range(2)
    ]
    a, b = (x.t() if i < transposed else x for i, x in enumerate(pair))
    op = torch.ops.custom_pypto.add_custom
    cost = work(OP, a, b)
    # Smaller data stays in the caches.
    steps = (cost,) if cost.bytes > 2**25 else ()
    return Case(lambda: op(a, b), lambda base: lambda: base.add(a, b), steps, dtype)
