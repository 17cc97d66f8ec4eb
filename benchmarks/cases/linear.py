"""The cases of linear: rows of a decode step to those of a prefill, by dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn.functional import linear

from benchmarks.case import Case, Planned, generator, normal, work

OP = "linear"
ROWS = (1, 4, 16, 64, 512, 4096)
LARGE, SMALL = (16384, 7168), (2048, 4096)
"""Weights: what no cache holds, and a smaller one."""


def cases() -> Iterator[Planned]:
    """Yield the cases, few rows first."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for weight in (SMALL, LARGE):
            for rows in ROWS:
                size = f"{rows} rows, {list(weight)} {str(dtype).removeprefix('torch.')}"
                quick = weight == SMALL and rows in (1, 16, 512)
                yield Planned(OP, size, partial(_case, rows, weight, dtype), quick=quick)


def _case(rows: int, weight: tuple[int, int], dtype: torch.dtype) -> Case:
    random = generator()
    weights = normal(*weight, generator=random, dtype=dtype, scale=weight[1] ** -0.5)
    given = normal(rows, weight[1], generator=random, dtype=dtype)
    op = torch.ops.custom_pypto.linear
    # The baseline's other bodies are of other ops.
    return Case(
        lambda: op(given, weights),
        lambda _: lambda: linear(given, weights),
        (work(OP, given, weights),),
        dtype,
    )
