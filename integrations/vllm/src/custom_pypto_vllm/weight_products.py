"""vLLM's linear layers with weights of 4 or 8 bits, on npu_weight_quant_batchmatmul."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import names
from .checkpoint import GROUP_MULTIPLE

_OP = "npu_weight_quant_batchmatmul"


class WeightQuantLinearKernel(names.MPLinearKernel):  # type: ignore[misc]
    """Multiplies by integers as they are stored: compressed-tensors', GPTQ's and AWQ's."""

    @classmethod
    def get_min_capability(cls) -> int:
        """Return that every CPU will do."""
        return -1

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Return whether a layer is served, and if not, why: vLLM asks its next kernel then."""
        reason = _not_served(c)
        return reason is None, reason

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


def register() -> None:
    """Put the kernel before vLLM's."""
    kernels = names._POSSIBLE_KERNELS[names.PlatformEnum.CPU]
    if WeightQuantLinearKernel not in kernels:
        kernels.insert(0, WeightQuantLinearKernel)


def _not_served(c: Any) -> str | None:
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
    theirs = names.CPUWNA16LinearKernel
    if (
        torch.cpu._is_amx_tile_supported()
        and c.act_type == torch.bfloat16
        and theirs.__name__ not in names.VLLM_DISABLED_KERNELS
        and theirs.can_implement(c)[0]
    ):
        return "vLLM's own product with AMX is faster"
    return missing(_OP)


def ask_for_amx() -> None:
    """Ask Linux for AMX: vLLM's attention does not, and without oneDNN's products nothing would."""
    if torch.cpu._is_amx_tile_supported():
        torch.cpu._init_amx()


def missing(op: str) -> str | None:
    """Say in one sentence that an op is not installed; None if it is."""
    # Here, so that processes without such weights load no op.
    import custom_pypto.core  # noqa: F401

    try:
        getattr(torch.ops.custom_pypto, op)
    except AttributeError as error:
        return str(error)
    return None
