"""The cases of products with weights: rows of a decode step to those of a prefill, by numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from custom_pypto_weight_quant_matmul import unpack_int4
from torch.nn.functional import linear

from benchmarks.case import Call, Case, Planned, normal, work

OP, QUANT_OP = "linear", "npu_quant_matmul"
WEIGHT_QUANT_OP = "npu_weight_quant_batchmatmul"
ROWS = (1, 4, 16, 64, 512, 4096)
LARGE, SMALL = (16384, 7168), (2048, 4096)
"""Weights: what no cache holds, and a smaller one."""


def cases() -> Iterator[Planned]:
    """Yield the cases of each kind of numbers, few rows first."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        name = str(dtype).removeprefix("torch.")
        yield from _of_sizes(OP, name, partial(_linear, dtype=dtype))
    for bits, group, name in ((8, 0, "int8, scales of columns"), (4, 128, "int4, groups of 128")):
        yield from _of_sizes(WEIGHT_QUANT_OP, name, partial(_weight_quant, bits=bits, group=group))
    yield from _of_sizes(QUANT_OP, "int8", _quant)


def _of_sizes(
    op: str, name: str, make: Callable[[int, tuple[int, int]], Case]
) -> Iterator[Planned]:
    for weight in (SMALL, LARGE):
        for rows in ROWS:
            quick = weight == SMALL and rows in (1, 16, 512)
            size = f"{rows} rows, {list(weight)} {name}"
            yield Planned(op, size, partial(make, rows, weight), quick=quick)


def _linear(rows: int, weight: tuple[int, int], dtype: torch.dtype) -> Case:
    weights = normal(*weight, dtype=dtype, scale=weight[1] ** -0.5)
    given = normal(rows, weight[1], dtype=dtype)
    op = torch.ops.custom_pypto.linear
    # The baseline's other bodies are of other ops.
    return Case(
        lambda: op(given, weights),
        lambda _: lambda: linear(given, weights),
        (work(OP, given, weights),),
        dtype,
    )


def _weight_quant(rows: int, size: tuple[int, int], bits: int, group: int) -> Case:
    columns, depth = size
    words = torch.randint(-(2**31), 2**31 - 1, (columns, depth * bits // 32), dtype=torch.int32)
    weight = (words.view(torch.int8) if bits == 8 else words).t()
    dtype = torch.bfloat16
    scale = normal(depth // group if group else 1, columns, dtype=dtype)
    given = normal(rows, depth, dtype=dtype)
    op = partial(torch.ops.custom_pypto.npu_weight_quant_batchmatmul, antiquant_group_size=group)

    def by_torch(_: object) -> Call:
        if bits == 8:
            rows_of_weight, scales = weight.t(), scale[0]
            return lambda: torch._weight_int8pack_mm(given, rows_of_weight, scales)
        # Its integers are from 0 to 15.
        numbers = unpack_int4(words).to(torch.int32) + 8
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 2)
        scales = torch.stack((scale, torch.zeros_like(scale)), -1)
        return lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(given, packed, group, scales)

    return Case(
        lambda: op(given, weight, scale),
        by_torch,
        (work(WEIGHT_QUANT_OP, given, weight, scale, antiquant_group_size=group),),
        dtype,
    )


def _quant(rows: int, weight: tuple[int, int]) -> Case:
    given, weights = (
        torch.randint(-128, 128, size, dtype=torch.int8) for size in ((rows, weight[1]), weight)
    )
    scale, row_scale = (torch.rand(size) for size in (weight[0], rows))
    op = torch.ops.custom_pypto.npu_quant_matmul
    options = {"pertoken_scale": row_scale, "output_dtype": torch.bfloat16}

    def by_torch() -> torch.Tensor:
        return (torch._int_mm(given, weights.t()) * scale * row_scale.unsqueeze(-1)).bfloat16()

    return Case(
        lambda: op(given, weights.t(), scale, **options),
        lambda _: by_torch,
        (work(QUANT_OP, given, weights.t(), scale),),
        torch.int8,
    )
