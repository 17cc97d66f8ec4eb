"""The cases of int8 products: rows of a decode step to those of a prefill."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.case import Case, Planned, generator, work
from benchmarks.cases.linear import LARGE, ROWS, SMALL

OP = "npu_quant_matmul"


def cases() -> Iterator[Planned]:
    """Yield the cases, few rows first."""
    for weight in (SMALL, LARGE):
        for rows in ROWS:
            quick = weight == SMALL and rows in (1, 16, 512)
            size = f"{rows} rows, {list(weight)} int8"
            yield Planned(OP, size, partial(_case, rows, weight), quick=quick)


def _case(rows: int, weight: tuple[int, int]) -> Case:
    random = generator()
    given, weights = (
        torch.randint(-128, 128, size, generator=random, device="cpu", dtype=torch.int8)
        for size in ((rows, weight[1]), weight)
    )
    scale, row_scale = (
        torch.rand(size, generator=random, device="cpu") for size in (weight[0], rows)
    )
    op = torch.ops.custom_pypto.npu_quant_matmul
    options = {"pertoken_scale": row_scale, "output_dtype": torch.bfloat16}
    return Case(
        lambda: op(given, weights.t(), scale, **options),
        lambda _: lambda: _by_torch(given, weights, scale, row_scale),
        (work(OP, given, weights.t(), scale),),
        torch.int8,
    )


def _by_torch(
    given: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor, row_scale: torch.Tensor
) -> torch.Tensor:
    sums = torch._int_mm(given, weights.t())
    return (sums * scale * row_scale.unsqueeze(-1)).bfloat16()
