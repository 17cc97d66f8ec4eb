"""The cases of npu_grouped_matmul: 8 of 256 experts for each token of a step, by dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_testing.timing.peaks import Work
from torch.nn.functional import linear

from benchmarks.case import Case, Planned, normal

OP = "npu_grouped_matmul"
TOKENS = (1, 4, 16, 64, 512)
EXPERTS, CHOSEN, DEPTH, COLUMNS = 256, 8, 2048, 1024


def cases() -> Iterator[Planned]:
    """Yield the cases, few tokens first."""
    for kind in (torch.bfloat16, torch.float16, torch.float32, torch.int8, torch.int32):
        for tokens in TOKENS:
            name = "int4" if kind == torch.int32 else str(kind).removeprefix("torch.")
            size = f"{tokens} tokens, {CHOSEN} of {EXPERTS} x {[COLUMNS, DEPTH]} {name}"
            yield Planned(OP, size, partial(_case, tokens, kind), quick=tokens in (1, 64))


def _case(tokens: int, kind: torch.dtype) -> Case:
    dtype = kind if kind.is_floating_point else torch.bfloat16
    weights = normal(EXPERTS, COLUMNS, DEPTH, dtype=dtype, scale=DEPTH**-0.5)
    x = normal(tokens * CHOSEN, DEPTH, dtype=dtype)
    chosen = torch.rand(tokens, EXPERTS).topk(CHOSEN).indices
    rows = chosen.flatten().bincount(minlength=EXPERTS)
    op = torch.ops.custom_pypto.npu_grouped_matmul
    options = {"split_item": 2, "group_type": 0, "group_list_type": 1, "group_list": rows}
    counts = rows.tolist()
    own, size = weights, float(dtype.itemsize)
    if kind != dtype:
        # Beside torch's products of weights in bf16: torch has no int8 and int4 of this form.
        size = 1 if kind == torch.int8 else 0.5
        own = torch.randint(2**31, (EXPERTS, COLUMNS, int(DEPTH * size) // 4)).int().view(kind)
        options["antiquant_scale"] = [torch.ones(EXPERTS, COLUMNS, dtype=dtype)]

    def one_after_another() -> torch.Tensor:
        split = zip(torch.split(x, counts), weights, strict=True)
        return torch.cat([linear(part, weight) for part, weight in split if len(part)])

    read = sum(1 for each in counts if each) * COLUMNS * DEPTH
    work = Work(2 * x.numel() * COLUMNS, int(read * size))
    return Case(
        lambda: op([x], [own.transpose(1, 2)], **options),
        lambda _: one_after_another,
        (work,),
        dtype,
    )
