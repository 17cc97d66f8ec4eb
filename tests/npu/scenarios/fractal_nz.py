"""Matrices in torch_npu's private storage format FRACTAL_NZ."""

from __future__ import annotations

import ctypes

import torch
import torch_npu


def in_fractal_nz(weight: torch.Tensor) -> torch.Tensor:
    """A matrix [K, N] as torch_npu has it in FRACTAL_NZ: [N / 16, K / 16, 16, 16] in memory."""
    rows, columns = weight.shape
    cast: torch.Tensor = torch_npu.empty_with_format(
        (rows, columns), dtype=weight.dtype, device="npu", acl_format=29
    )
    tiles = weight.reshape(rows // 16, 16, columns // 16, 16).permute(2, 0, 1, 3).contiguous()
    assert cast.untyped_storage().nbytes() == tiles.nbytes
    # A simulated NPU's memory is the host's.
    ctypes.memmove(cast.untyped_storage().data_ptr(), tiles.data_ptr(), tiles.nbytes)
    return cast
