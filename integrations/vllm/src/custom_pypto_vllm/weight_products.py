"""vLLM's linear layers with weights of 4 or 8 bits, on npu_weight_quant_batchmatmul."""

from __future__ import annotations

from os import environ
from typing import Any

import torch
from torch import Tensor

from . import names
from .checkpoint import GROUP_MULTIPLE
from .choice import AMX, OfferedKernel, ask_for_amx, has, missing


class WeightQuantLinearKernel(OfferedKernel, names.MPLinearKernel):  # type: ignore[misc]
    """Multiplies by integers as they are stored: compressed-tensors', GPTQ's and AWQ's."""

    theirs, possible = names.CPUWNA16LinearKernel, names._POSSIBLE_KERNELS

    @classmethod
    def get_min_capability(cls) -> int:
        """Return that every CPU will do."""
        return -1

    @classmethod
    def reason_against(cls, c: Any, is_asked_for: bool) -> str | None:
        """Say why a layer of this configuration is not served; None if it is."""
        bits, columns = c.weight_type.size_bits, c.partition_weight_shape[0]
        if str(c.weight_type) not in ("uint4", "uint8", "uint4b8", "uint8b128"):
            return f"weights are {c.weight_type}, not uint4, uint8, uint4b8 or uint8b128"
        if c.weight_type.has_bias() == c.zero_points:
            return f"weights are {c.weight_type} with{'' if c.zero_points else 'out'} zero points"
        if c.act_type not in (torch.float32, torch.float16, torch.bfloat16):
            return f"activations are {c.act_type}"
        if columns * bits % 32:
            return f"rows of {columns} numbers do not fill int32 numbers"
        if c.group_size != -1 and (c.group_size % GROUP_MULTIPLE or columns % c.group_size):
            return f"rows of {columns} numbers have groups of {c.group_size}"
        # With AMX, vLLM rounds activations to int8, unless it is told not to.
        rounds_activations = int(environ.get("VLLM_CPU_INT4_W4A8", "1")) != 0
        is_slower = has(AMX) and c.act_type == torch.bfloat16 and rounds_activations
        if is_slower and not is_asked_for and cls.theirs.can_implement(c)[0]:
            return "vLLM's own product of int8 activations with AMX is faster"
        return missing("npu_weight_quant_batchmatmul")

    def process_weights_after_loading(self, layer: Any) -> None:
        """Store the weight as [N, K / 8] or [N, K], scales and offsets as [groups, N]."""
        ask_for_amx()
        # Here, so that processes without such weights load no op.
        from custom_pypto_weight_quant_matmul import to_signed, unpack_unsigned

        bits = self.config.weight_type.size_bits
        weight, scale = getattr(layer, self.w_q_name), getattr(layer, self.w_s_name)
        # Packed along K, as [N, K / 8] by compressed-tensors, as [K / 8, N] by the others.
        packed = (weight.data if weight.input_dim == 1 else weight.data.t()).contiguous()
        packed = to_signed(packed, bits)
        if bits == 8:
            packed = packed.view(torch.int8)
        scales = (scale.data.t() if scale.output_dim == 0 else scale.data).contiguous()
        offset = None
        if self.config.zero_points:
            zero = getattr(layer, self.w_zp_name)
            of_groups = zero.data.t() if zero.output_dim == 0 else zero.data
            zeros = unpack_unsigned(of_groups, bits)[:, : scales.shape[1]]
            offset = -zeros.to(scales.dtype)
        for name, values in ((self.w_q_name, packed), (self.w_s_name, scales)):
            setattr(layer, name, torch.nn.Parameter(values, requires_grad=False))
        if self.w_zp_name is not None:  # GPTQ stores zero points of symmetric weights, too
            frozen = None if offset is None else torch.nn.Parameter(offset, requires_grad=False)
            setattr(layer, self.w_zp_name, frozen)

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x times the weight, plus the bias."""
        weight, scale, offset = self._get_weight_params(layer)
        group = max(self.config.group_size, 0)  # -1: a scale for each column
        result: Tensor = torch.ops.custom_pypto.npu_weight_quant_batchmatmul(
            x, weight.t(), scale, offset, bias=bias, antiquant_group_size=group
        )
        return result
