"""add_custom on emulated kernels, for rows of any step."""

from __future__ import annotations

import torch
from emulator import Emulated, offset, tensor_of
from torch import Tensor

ADD = 1
DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
)


class Add:
    """The op, for two tensors [n]."""

    def __init__(self, kernels: Emulated) -> None:
        self._kernels = kernels

    def __call__(self, one: Tensor, other: Tensor) -> Tensor:
        """Their sum."""
        dtype = one.dtype
        (answer,) = self._kernels.ask(
            ADD,
            [
                *(DTYPES.index(dtype), dtype.itemsize, len(one)),
                *(one, offset(one), one.stride(0)),
                *(other, offset(other), other.stride(0)),
            ],
            answers=1,
        )
        return tensor_of(answer, dtype, len(one))
