"""The cases of npu_grouped_matmul: 8 of 256 experts for each token of a step, by dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_testing.timing.peaks import Work
from torch.nn.functional import linear

from benchmarks.case import Case, Planned, generator, normal

OP = "npu_grouped_matmul"
TOKENS = (1, 4, 16, 64, 512)
EXPERTS, CHOSEN, DEPTH, COLUMNS = 256, 8, 2048, 1024


def cases() -> Iterator[Planned]:
    """Yield the cases, few tokens first."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for tokens in TOKENS:
            name = str(dtype).removeprefix("torch.")
            size = f"{tokens} tokens, {CHOSEN} of {EXPERTS} x {[COLUMNS, DEPTH]} {name}"
            yield Planned(OP, size, partial(_case, tokens, dtype), quick=tokens in (1, 64))


def _case(tokens: int, dtype: torch.dtype) -> Case:
    random = generator()
    weights = normal(EXPERTS, COLUMNS, DEPTH, generator=random, dtype=dtype, scale=DEPTH**-0.5)
    x = normal(tokens * CHOSEN, DEPTH, generator=random, dtype=dtype)
    chosen = torch.rand(tokens, EXPERTS, generator=random).topk(CHOSEN).indices
    rows = chosen.flatten().bincount(minlength=EXPERTS)
    op = torch.ops.custom_pypto.npu_grouped_matmul
    options = {"split_item": 2, "group_type": 0, "group_list_type": 1, "group_list": rows}
    counts = rows.tolist()

    def one_after_another() -> torch.Tensor:
        split = zip(x.split(counts), weights, strict=True)
        return torch.cat([linear(own, weight) for own, weight in split if len(own)])

    read = sum(1 for each in counts if each) * COLUMNS * DEPTH
    work = Work(2 * x.numel() * COLUMNS, read * dtype.itemsize)
    return Case(
        lambda: op([x], [weights.transpose(1, 2)], **options),
        lambda _: one_after_another,
        (work,),
        dtype,
    )
