"""The quantised indexer prolog with weights in FRACTAL_NZ, on NPU tensors."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu
from custom_pypto_lightning_indexer_prolog import comparison, samples
from custom_pypto_plugin import SampleInput

from scenarios.calls import count_phase_1, to_device
from scenarios.fractal_nz import ND, to_fractal_nz

WEIGHTS = ("wq_b", "wk", "weights_proj")
CACHES = ("idx_k_cache", "idx_k_scale_cache")


def agrees(size: str) -> int:
    """Weights that torch_npu has cast to FRACTAL_NZ, eagerly. Returns how often phase 1 ran."""
    on_cpu: dict[str, Any] = samples.arguments(samples.CASES[size])
    on_npu = to_device("npu", on_cpu)
    for name in WEIGHTS:
        on_npu[name] = to_fractal_nz(on_npu[name])
    op = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
    returned, counted = count_phase_1(op, **on_npu)
    expected, sample = op(**on_cpu), SampleInput((), on_cpu)
    comparison.compare(tuple(each.cpu() for each in returned), expected, sample)
    comparison.compare_caches(
        {name: on_npu[name].cpu() for name in CACHES}, {n: on_cpu[n] for n in CACHES}, sample
    )
    return counted


def casts_there_and_back(dtype: str, rows: int, columns: int) -> None:
    """A matrix as FRACTAL_NZ and as ND again."""
    generator = torch.Generator().manual_seed(rows)
    matrix = torch.randint(-128, 128, (rows, columns), generator=generator)
    matrix = matrix.to(getattr(torch, dtype))
    back = torch_npu.npu_format_cast(to_fractal_nz(matrix), ND)
    assert torch.equal(back.cpu(), matrix)
