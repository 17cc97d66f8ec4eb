"""vLLM's linear layers with weights and activations of 8 bits (W8A8), on npu_quant_matmul."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import names
from .choice import AMX, OfferedKernel, ask_for_amx, is_x86_without, missing


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
        if not c.input_symmetric:
            return "activations have zero points"
        if not is_x86_without(AMX) and not is_asked_for:
            return "vLLM's own product takes less time with AMX, and was not compared on Arm"
        return missing("npu_quant_matmul") or missing("npu_dynamic_quant")

    def process_weights_after_loading(self, layer: Any) -> None:
        """Store a scale for each column, and one of the activations if it is static."""
        ask_for_amx()
        _, scale, static, *_ = self._get_layer_params(layer)
        scales = scale.data.flatten()
        if not self.config.is_channelwise:  # one for each of the weights that vLLM joins
            widths = torch.tensor(layer.logical_widths, device=scales.device)
            scales = scales.repeat_interleave(widths)
        _, scale_name, static_name, *_ = self.layer_param_names
        setattr(layer, scale_name, torch.nn.Parameter(scales, requires_grad=False))
        if static is not None:
            largest = torch.nn.Parameter(static.data.max(), requires_grad=False)
            setattr(layer, static_name, largest)

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x times the weight, plus the bias."""
        weight, scale, static, *_ = self._get_layer_params(layer)
        rows = x.reshape(-1, x.shape[-1])
        result = multiply(rows, weight, scale, static, bias)
        return result.view(*x.shape[:-1], result.shape[-1])


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
            numbers,
            weight.t(),
            scale,
            pertoken_scale=row_scale,
            bias=bias,
            output_dtype=rows.dtype,
        )
        return result
    sums = ops.npu_quant_matmul(numbers, weight.t(), scale, output_dtype=torch.int32)
    result = sums * scale * row_scale.unsqueeze(-1)
    return result if bias is None else result + bias
