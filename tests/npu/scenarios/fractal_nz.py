"""Matrices in torch_npu's private storage format FRACTAL_NZ."""

from __future__ import annotations

import torch
import torch_npu

ND, NZ = 2, 29


def to_fractal_nz(matrix: torch.Tensor) -> torch.Tensor:
    """The matrix on an NPU, cast as torch_npu does it."""
    torch_npu.npu.config.allow_internal_format = True
    try:
        cast: torch.Tensor = torch_npu.npu_format_cast(matrix.to("npu"), NZ)
    finally:
        torch_npu.npu.config.allow_internal_format = False
    assert torch_npu.get_npu_format(cast) == NZ
    return cast
