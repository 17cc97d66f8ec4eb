"""What npu_lightning_indexer_prolog_pto does with queries beside products, on emulated kernels."""

from __future__ import annotations

import torch
from emulator import Emulated, tensor_of
from torch import Tensor

ROTATE = 2
QUANTISE = 3


class Query:
    """The steps."""

    def __init__(self, kernels: Emulated) -> None:
        self._kernels = kernels

    def rotate(
        self, sums: Tensor, token_scale: float, column_scales: Tensor, sin: Tensor, cos: Tensor
    ) -> Tensor:
        """One token's heads: sums int32 and scales [heads, D], sin and cos [R], to bf16."""
        sizes = [sums.shape[-1], len(sin), token_scale]
        tensors = [x.clone() for x in (sums, column_scales, sin, cos)]
        (answer,) = self._kernels.ask(ROTATE, [*sizes, *tensors], answers=1)
        return tensor_of(answer, torch.bfloat16, *sums.shape)

    def quantise(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x fp32 [rows, D], rounded to bf16, as int8, and the fp16 scales [rows, 1]."""
        numbers, scales = self._kernels.ask(QUANTISE, [x.shape[-1], x.clone()], answers=2)
        return (
            tensor_of(numbers, torch.int8, *x.shape),
            tensor_of(scales, torch.float16, len(x), 1),
        )
