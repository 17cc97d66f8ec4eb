"""The quantised indexer prolog with weights in FRACTAL_NZ, on NPU tensors."""

from __future__ import annotations

import importlib
from typing import Any

import custom_pypto_simulator
import torch
import torch_npu
from custom_pypto_plugin import SampleInput

WEIGHTS = ("wq_b", "wk", "weights_proj")
CACHES = ("idx_k_cache", "idx_k_scale_cache")
_ND, _NZ = 2, 29


def _as_nz(matrix: torch.Tensor) -> torch.Tensor:
    torch_npu.npu.config.allow_internal_format = True
    try:
        cast: torch.Tensor = torch_npu.npu_format_cast(matrix, _NZ)
    finally:
        torch_npu.npu.config.allow_internal_format = False
    assert torch_npu.get_npu_format(cast) == _NZ
    return cast


def agrees(size: str) -> int:
    """Weights that torch_npu has cast to FRACTAL_NZ, eagerly. Returns how often phase 1 ran."""
    package = "custom_pypto_lightning_indexer_prolog"
    samples = importlib.import_module(f"{package}.samples")
    comparison = importlib.import_module(f"{package}.comparison")
    on_cpu: dict[str, Any] = samples.arguments(samples.CASES[size])
    on_npu = {
        name: each.to("npu") if isinstance(each, torch.Tensor) else each
        for name, each in on_cpu.items()
    }
    for name in WEIGHTS:
        on_npu[name] = _as_nz(on_npu[name])
    torch_npu.npu.synchronize()
    before = custom_pypto_simulator.calls("phase1")
    op = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
    returned = op(**on_npu)
    torch_npu.npu.synchronize()
    counted = custom_pypto_simulator.calls("phase1") - before
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
    back = torch_npu.npu_format_cast(_as_nz(matrix.to("npu")), _ND)
    assert torch.equal(back.cpu(), matrix)
