"""vLLM's linear layers with weights and activations of 8 bits (W8A8), on npu_quant_matmul."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import names
from .choice import AMX, VNNI, OfferedKernel, ask_for_amx, has, is_x86_without, missing


class Int8LinearKernel(OfferedKernel, names.Int8ScaledMMLinearKernel):  # type: ignore[misc]
    """Multiplies integers exactly. Without VNNI, vLLM's own sums of two products saturate."""

    theirs, possible = names.CPUInt8ScaledMMLinearKernel, names._POSSIBLE_INT8_KERNELS

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        """Return that every CPU will do."""
        return True, None

    @classmethod
    def reason_against(cls, c: Any, is_asked_for: bool) -> str | None:
        """Say why a layer of this configuration is not served; None if it is."""
        if not c.input_symmetric and has(VNNI) and not is_asked_for:
            return "vLLM's own product takes zero points of activations in one pass"
        if not is_x86_without(AMX) and not is_asked_for:
            return "vLLM's own product takes less time with AMX, and was not compared on Arm"
        return missing("npu_quant_matmul") or missing("npu_dynamic_quant")

    def process_weights_after_loading(self, layer: Any) -> None:
        """Store a scale for each column, and what all activations share: a scale, a zero point."""
        ask_for_amx()
        weight, scale, static, zero, _ = self._get_layer_params(layer)
        scales = scale.data.flatten()
        if not self.config.is_channelwise:  # one for each of the weights that vLLM joins
            widths = torch.tensor(layer.logical_widths, device=scales.device)
            scales = scales.repeat_interleave(widths)
        found = {1: scales}
        if static is not None and self.config.input_symmetric:
            found[2] = static.data.max()
        elif static is not None:  # the range of all joined weights' activations
            low, high = ((static.data * (end - zero.data.int())) for end in (-128, 127))
            found[2] = (high.max() - low.min()) / 255
            found[3] = (-128 - low.min() / found[2]).round()
        if not self.config.input_symmetric:
            found[4] = weight.data.sum(1, dtype=torch.int32)
        for place, value in found.items():
            name = self.layer_param_names[place]
            setattr(layer, name, torch.nn.Parameter(value, requires_grad=False))

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x times the weight, plus the bias."""
        weight, scale, static, zero, sums = self._get_layer_params(layer)
        rows = x.reshape(-1, x.shape[-1])
        if self.config.input_symmetric:
            result = multiply(rows, weight, scale, static, bias)
        else:
            numbers, row_scale, zeros = quantise_range(rows, static, zero)
            less = zeros.int() * sums
            result = _multiply_in_fp32(numbers, weight, scale, row_scale, less, bias).to(x.dtype)
        return result.view(*x.shape[:-1], result.shape[-1])


def quantise_range(
    rows: Tensor, static: Tensor | None, zero: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return numbers of 8 bits, scales [M, 1] and zero points: x is (number - zero) * scale.

    Without a static scale, the range of a row and zero takes all 256 numbers.
    """
    rows = rows.float()
    if static is None or zero is None:
        low, high = rows.aminmax(dim=-1, keepdim=True)
        low, high = low.clamp(max=0), high.clamp(min=0)
        static = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).tiny)
        zero = (-128 - low / static).round()
    return ((rows / static).round() + zero).clamp(-128, 127).to(torch.int8), static, zero


def multiply(
    rows: Tensor, weight: Tensor, scale: Tensor, static: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Return rows, quantised by row or by a static scale, times a weight [N, K], plus the bias."""
    ops = torch.ops.custom_pypto
    if static is None:
        numbers, row_scale = ops.npu_dynamic_quant(rows)
    else:
        numbers = (rows.float() / static).round().clamp(-128, 127).to(torch.int8)
        row_scale = static.expand(rows.shape[0])
    if rows.dtype != torch.float32:
        result: Tensor = ops.npu_quant_matmul(
            numbers, weight.t(), scale, pertoken_scale=row_scale, bias=bias, output_dtype=rows.dtype
        )
        return result
    return _multiply_in_fp32(numbers, weight, scale, row_scale.unsqueeze(-1), 0, bias)


def _multiply_in_fp32(
    numbers: Tensor,
    weight: Tensor,
    scale: Tensor,
    row_scale: Tensor,
    less: Tensor | int,
    bias: Tensor | None,
) -> Tensor:
    """Return the integers' sums, minus `less`, times both scales, plus the bias."""
    ops = torch.ops.custom_pypto
    sums = ops.npu_quant_matmul(numbers, weight.t(), scale, output_dtype=torch.int32)
    result: Tensor = (sums - less) * scale * row_scale
    return result if bias is None else result + bias
