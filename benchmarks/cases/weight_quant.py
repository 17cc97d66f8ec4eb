"""The cases of npu_weight_quant_batchmatmul: rows of a decode step to those of a prefill."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_weight_quant_matmul import unpack_int4

from benchmarks.case import Call, Case, Planned, generator, normal, work
from benchmarks.cases.linear import LARGE, ROWS, SMALL

OP = "npu_weight_quant_batchmatmul"


def cases() -> Iterator[Planned]:
    """Yield the cases, few rows first."""
    for bits, group in ((8, 0), (4, 128)):
        for weight in (SMALL, LARGE):
            for rows in ROWS:
                size = f"{rows} rows, {list(weight)} int{bits}, " + (
                    f"groups of {group}" if group else "scales of columns"
                )
                quick = weight == SMALL and rows in (1, 16, 512)
                yield Planned(OP, size, partial(_case, rows, weight, bits, group), quick=quick)


def _case(rows: int, size: tuple[int, int], bits: int, group: int) -> Case:
    random = generator()
    columns, depth = size
    words = torch.randint(
        -(2**31), 2**31 - 1, (columns, depth * bits // 32), generator=random, dtype=torch.int32
    )
    weight = (words.view(torch.int8) if bits == 8 else words).t()
    dtype = torch.bfloat16
    scale = normal(depth // group if group else 1, columns, generator=random, dtype=dtype)
    given = normal(rows, depth, generator=random, dtype=dtype)
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
        (work(OP, given, weight, scale, antiquant_group_size=group),),
        dtype,
    )
