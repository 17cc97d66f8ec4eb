"""The ops in plain PyTorch, and the fake of npu_quant_matmul."""

from __future__ import annotations

import torch
from torch import Tensor

_DTYPES = {1: torch.int8, 3: torch.int32, 5: torch.float16, 15: torch.bfloat16}


def empty_result(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: int | None = None,
    x1_dtype: int | None = None,
    x2_dtype: int | None = None,
    pertoken_scale_dtype: int | None = None,
    scale_dtype: int | None = None,
    group_sizes: list[int] | None = None,
    y_scale: Tensor | None = None,
) -> Tensor:
    """Return the result's shape, dtype and device; refuse tensors on several devices."""
    given = {"x2": x2, "scale": scale, "offset": offset, "bias": bias, "y_scale": y_scale}
    for name, tensor in {**given, "pertoken_scale": pertoken_scale}.items():
        if tensor is not None and tensor.device != x1.device:
            where = f"must be on {x1.device}, as x1 is, got {tensor.device}"
            raise RuntimeError(f"npu_quant_matmul: argument '{name}' {where}")
    dtype = _DTYPES.get(output_dtype or 1, torch.int8)
    return x1.new_empty((*x1.shape[:-1], x2.shape[-1]), dtype=dtype)


def npu_quant_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: int | None = None,
    **others: None,
) -> Tensor:
    """Exact sums, scaled in fp32, rounded once."""
    sums = (x1.double() @ x2.double()).int()
    has_integers = bias is not None and bias.dtype == torch.int32
    if has_integers:
        sums = sums + bias
    dtype = _DTYPES[int(output_dtype or 1)]
    if dtype == torch.int32:
        return sums
    result = sums.float() * scale.float()
    if pertoken_scale is not None:
        result = result * pertoken_scale.unsqueeze(-1)
    if bias is not None and not has_integers:
        result = result + bias.float()
    if offset is not None:
        result = result + offset
    return result.to(dtype) if dtype != torch.int8 else result.round().clamp(-128, 127).to(dtype)


def npu_dynamic_quant(
    input: Tensor,  # noqa: A002
    *,
    smooth_scales: Tensor | None = None,
    **others: object,
) -> tuple[Tensor, Tensor]:
    """A scale for each row; rows of zeros stay zeros."""
    smoothed = input.float() if smooth_scales is None else input.float() * smooth_scales.float()
    scale = smoothed.abs().amax(-1) / 127
    return (smoothed / scale.unsqueeze(-1)).nan_to_num(0).round().to(torch.int8), scale
