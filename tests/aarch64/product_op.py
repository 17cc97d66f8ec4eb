"""The prologs' products with weights, on emulated kernels."""

from __future__ import annotations

import torch
from emulator import ELEMENTS, Emulated, offset, tensor_of
from torch import Tensor

MATMUL = 1
LANES = 16


def multiply(
    kernels: Emulated, x: Tensor, weight: Tensor, *, to_fp32: bool = False, panels: int = 1 << 62
) -> Tensor:
    """Multiply x [T, K] by weight: [K, N] of any strides, or fractal NZ order [N/16, K, 16].

    The result, [T, N], is rounded to x's dtype; with `to_fp32` it is not, and for int8 it is int32.
    The kernels compute `panels` panels of columns at a time.
    """
    strides: tuple[int, ...]
    if weight.dim() == 2:
        columns = weight.shape[1]
        strides = (*weight.stride(), max(columns, 1), 0)
    else:
        columns = weight.shape[0] * LANES
        strides = (*weight.stride()[1:], LANES, weight.stride(0))
    arguments = [
        *(ELEMENTS[x.dtype], panels),
        *(x, offset(x), x.stride(0), x.shape[0], x.shape[1]),
        *(weight, offset(weight)),
        *(*strides, columns, to_fp32),
    ]
    (answer,) = kernels.call(MATMUL, arguments, answers=1)
    rounded = torch.int32 if x.dtype == torch.int8 else x.dtype
    return tensor_of(answer, torch.float32 if to_fp32 else rounded, x.shape[0], columns)
