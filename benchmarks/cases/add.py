"""The cases of add_custom: small ones, which time the dispatch, and ones that memory limits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32

from benchmarks.case import Case, Planned, work

OP = "add_custom"


def cases() -> Iterator[Planned]:
    """Yield the cases, small ones first."""
    small = partial(_add, (16,), torch.float32)
    yield Planned(OP, "[16] float32", small, quick=True)
    yield Planned(OP, "[16] float32, autograd on", small, quick=True, inference=False)
    yield Planned(OP, "[8, 2048] float16", partial(_add, (8, 2048), torch.float16))
    for dtype in (torch.float32, torch.bfloat16):
        shape = (4096, DEEPSEEK_V32.hidden)
        size = f"{list(shape)} {str(dtype).removeprefix('torch.')}"
        yield Planned(OP, size, partial(_add, shape, dtype), quick=dtype == torch.bfloat16)


def _add(shape: tuple[int, ...], dtype: torch.dtype) -> Case:
    a, b = torch.randn(2, *shape).to(dtype)
    op = torch.ops.custom_pypto.add_custom
    cost = work(OP, a, b)
    # Smaller data stays in the caches.
    steps = (cost,) if cost.bytes > 2**25 else ()
    return Case(lambda: op(a, b), lambda base: lambda: base.add(a, b), steps, dtype)
