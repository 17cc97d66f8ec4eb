"""vLLM's experts on npu_grouped_matmul: weights of 16 and 32 bits, and integers of 4 and 8.

vLLM asks `backend_to_kernel_cls`, a function of each of its three modules that choose experts,
which classes of them a CPU has.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from custom_pypto_weight_quant_matmul import pack_int4, to_signed, unpack_awq, unpack_unsigned
from torch import Tensor
from torch.nn.functional import silu

from . import names
from .checkpoint import GROUP_MULTIPLE
from .choice import BF16, is_x86_without, missing

# Tokens whose results of experts are added at once.
_TOKENS = 256


class GroupedExperts(names.CPUUnquantizedExperts):  # type: ignore[misc]
    """Groups the rows of a batch by expert, and reads the weights of each chosen one once."""

    # Scales and offsets of both weights, of integers.
    factors: tuple[Tensor | None, ...] = (None,) * 4

    @staticmethod
    def _supports_quant_scheme(weight_key: Any, activation_key: Any) -> bool:
        # Of those that the three functions ask for, one with a scale for each expert alone.
        scale = getattr(weight_key, "scale", None)
        return scale is None or not scale.group_shape.is_per_tensor()

    @staticmethod
    def is_supported_config(cls: Any, moe_config: Any, *keys: Any) -> tuple[bool, str | None]:
        """Return whether a layer is served, and if not, why."""
        # Not of vLLM's class for CPUs: its kernel has limits of sizes.
        base: Any = super(names.CPUUnquantizedExperts, cls)
        supported, reason = base.is_supported_config(cls, moe_config, *keys)
        if supported and moe_config.activation != names.MoEActivation.SILU:
            reason = f"activation {moe_config.activation} is not SILU"
        elif supported:
            reason = "experts have biases" if moe_config.has_bias else missing("npu_grouped_matmul")
        return reason is None, reason

    def process_weights_after_loading(self, layer: Any) -> None:
        """Leave weights as they are; make scales of int8 [E, N]."""
        if self.w1_scale is not None:
            first, second = (
                each.data.flatten(1).to(self.moe_config.in_dtype)
                for each in (self.w1_scale, self.w2_scale)
            )
            self.factors = first, None, second, None

    def apply(
        self,
        output: Tensor,
        hidden_states: Tensor,
        w1: Tensor,
        w2: Tensor,
        topk_weights: Tensor,
        topk_ids: Tensor,
        activation: Any,
        global_num_experts: int,
        expert_map: Tensor | None,
        a1q_scale: Any,
        a2_scale: Any,
        workspace13: Any,
        workspace2: Any,
        expert_tokens_meta: Any,
        apply_router_weight_on_input: bool,
    ) -> None:
        """Write the weighted sum of each token's experts to ``output`` [tokens, H]."""
        if expert_map is not None:
            topk_ids = expert_map[topk_ids.long()]
        if apply_router_weight_on_input:  # vLLM has multiplied by it
            topk_weights = torch.ones_like(topk_weights)
        inputs = hidden_states, w1, w2, topk_weights, topk_ids
        # Of what enters the second product; vLLM's own experts ignore it.
        limit = getattr(self.moe_config, "swiglu_limit", None) or math.inf
        torch.ops.custom_pypto_vllm.multiply_by_experts(output, *inputs, limit, self.factors)


class PackedExperts(GroupedExperts):
    """Experts whose weights are packed integers, which the layer below converts."""

    @staticmethod
    def is_supported_config(cls: Any, *args: Any) -> tuple[bool, str | None]:
        """Return whether a layer is served, and if not, why."""
        mismatch = names.mismatch(names.PACKED)
        return (False, mismatch) if mismatch else GroupedExperts.is_supported_config(cls, *args)


def _multiply_by_experts(
    output: Tensor,
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    weights: Tensor,
    ids: Tensor,
    limit: float,
    factors: list[Tensor | None],
) -> None:
    experts, chosen = w1.shape[0], ids.shape[1]
    local = ids.flatten().long()
    local = torch.where(local < 0, experts, local)  # of another process: rows of no group
    order = local.argsort(stable=True)
    counts = local.bincount(minlength=experts + 1)[:experts]
    gate, up = grouped(x[order // chosen], w1, counts, *factors[:2]).chunk(2, -1)
    if limit < math.inf:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    found = grouped(silu(gate) * up, w2, counts, *factors[2:])
    place = order.argsort().view_as(ids)
    for first in range(0, x.shape[0], _TOKENS):
        part = slice(first, first + _TOKENS)
        each = found[place[part]].float() * weights[part, :, None].float()
        output[part] = each.sum(1)


def grouped(
    rows: Tensor, weight: Tensor, counts: Tensor, scale: Tensor | None, offset: Tensor | None
) -> Tensor:
    """Return the product of each group of rows with its weight [N, K]."""
    ops = torch.ops.custom_pypto
    by_column = weight.transpose(1, 2)
    lists = {
        "antiquant_scale": None if scale is None else [scale],
        "antiquant_offset": None if offset is None else [offset],
    }
    if scale is None or rows.dtype != torch.float32:
        groups = {"group_list": counts, "group_list_type": 1, "group_type": 0, "split_item": 2}
        result: Tensor = ops.npu_grouped_matmul([rows], [by_column], **groups, **lists)[0]
        return result
    # That op has no float32 beside integers.
    size = rows.shape[1] // scale.shape[1] if scale.dim() == 3 else 0
    results = [rows.new_zeros(int(rows.shape[0] - counts.sum()), weight.shape[1])]
    parts = torch.split(rows, [*counts.tolist(), results[0].shape[0]])
    for expert, part in reversed([*enumerate(parts[:-1])]):
        if part.shape[0]:
            own = None if offset is None else offset[expert]
            arguments = part, by_column[expert], scale[expert], own
            results.append(ops.npu_weight_quant_batchmatmul(*arguments, antiquant_group_size=size))
    return torch.cat(results[::-1])


# One op for a compiled graph, which cannot follow which experts have tokens.
_LIBRARY: Any = torch.library.Library("custom_pypto_vllm", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "multiply_by_experts(Tensor(a!) output, Tensor x, Tensor w1, Tensor w2, Tensor weights,"
    " Tensor ids, float limit, Tensor?[] factors) -> ()"
)
_LIBRARY.impl("multiply_by_experts", _multiply_by_experts, "CPU")
torch.library.register_fake(
    "custom_pypto_vllm::multiply_by_experts", lambda *args: None, lib=_LIBRARY
)


# vLLM's methods for integers, and what they call weights, scales and zero points.
_PACKED = {
    "AutoAWQMoEMethod": ("qweight", "scales", "qzeros"),
    "AutoGPTQMoEMethod": ("qweight", "scales", "qzeros"),
    "CompressedTensorsWNA16MoEMethod": ("weight_packed", "weight_scale", "weight_zero_point"),
}


@names.RoutedExperts.register_oot(name="RoutedExperts")
class ServedRoutedExperts(names.RoutedExperts):  # type: ignore[misc]
    """vLLM's layer of experts, which converts packed integers for ours where vLLM chose them."""

    def _get_quant_method(self, *args: Any, **kwargs: Any) -> Any:
        method = super()._get_quant_method(*args, **kwargs)
        if getattr(method, "experts_cls", None) is PackedExperts:
            about = getattr(method, "weight_quant", None) or getattr(method, "quant_config", None)
            _check(type(method).__name__, about)
            method.process_weights_after_loading = partial(_convert, method, about)
        return method


def _check(method: str, about: Any) -> None:
    size = getattr(about, "group_size", None) or -1
    is_ordered = getattr(about, "desc_act", False) or getattr(about, "actorder", None) == "group"
    if method not in _PACKED or is_ordered or (size != -1 and size % GROUP_MULTIPLE):
        raise NotImplementedError(
            "custom_pypto_vllm: experts of 4 or 8 bits need groups of a multiple of"
            f" {GROUP_MULTIPLE} in the order of the weights, and a hidden size of a multiple of"
            f" 128: vLLM chose {method}, groups have {size}, their order is"
            f" {'another' if is_ordered else 'that of the weights'}"
        )


def _convert(method: Any, about: Any, layer: Any) -> None:
    """Store weights as [E, N, K] or [E, N, K / 8], scales and offsets as [E, groups, N]."""
    if layer._loaded_expert_biases:
        raise NotImplementedError("custom_pypto_vllm: experts of 4 or 8 bits cannot have biases")
    of_weight, of_scale, of_zeros = _PACKED[type(method).__name__]
    is_awq = type(method).__name__ == "AutoAWQMoEMethod"
    is_ct = of_weight == "weight_packed"
    is_n_first = is_ct and not method.is_transposed  # vLLM 0.30 loads them transposed
    has_zeros = about.zero_point if is_awq else is_ct and not about.symmetric
    bits = getattr(about, "num_bits", None) or about.weight_bits
    factors: list[Tensor | None] = []
    for name in ("w13", "w2"):
        packed, scale = (getattr(layer, f"{name}_{each}").data for each in (of_weight, of_scale))
        if is_awq:
            weight = torch.stack([pack_int4(unpack_awq(each).t().contiguous()) for each in packed])
        else:
            packed = packed if is_n_first else packed.transpose(1, 2)
            weight = to_signed(packed.contiguous(), bits)
            weight = weight.view(torch.int8) if bits == 8 else weight
        offset = None
        if has_zeros:
            zeros = getattr(layer, f"{name}_{of_zeros}").data
            zeros = zeros.transpose(1, 2) if is_n_first else zeros
            zeros = unpack_unsigned(zeros, bits) if is_ct else unpack_awq(zeros)
            offset = -zeros.to(method.moe.in_dtype)
        scale = scale.transpose(1, 2) if is_n_first else scale
        factors += scale.to(method.moe.in_dtype).contiguous(), offset
        for each in (of_weight, of_scale, of_zeros):
            setattr(layer, f"{name}_{each}", None)
        setattr(layer, f"{name}_weight", torch.nn.Parameter(weight, requires_grad=False))
    method.moe_quant_config = names.FUSED_MOE_UNQUANTIZED_CONFIG
    method.moe_kernel = names.make_int8_moe_kernel(
        None,
        method.moe_quant_config,
        method.moe,
        method.experts_cls,
        layer._expert_routing_tables(),
    )
    method.moe_kernel.fused_experts.factors = tuple(factors)


def register() -> None:
    """Offer the experts after vLLM's, and before those for weights without scales if faster."""
    # With instructions for bf16, vLLM's take as long. zentorch's were not compared.
    is_faster = is_x86_without(BF16) and not names.current_platform.is_zen_cpu()
    for oracle, cpu, ours, is_first in (
        (names.unquantized, names.UnquantizedMoeBackend.CPU, GroupedExperts, is_faster),
        (names.int8, names.Int8MoeBackend.CPU, GroupedExperts, False),
        (names.int_wna16, names.WNA16MoEBackend.CPU, PackedExperts, False),
    ):
        oracle.backend_to_kernel_cls = _offering(oracle.backend_to_kernel_cls, cpu, ours, is_first)


def _offering(theirs: Any, cpu: Any, ours: Any, is_first: bool) -> Any:
    def backend_to_kernel_cls(backend: Any) -> list[Any]:
        found: list[Any] = theirs(backend)
        if backend is not cpu or ours in found:
            return found
        return [ours, *found] if is_first else [*found, ours]

    return backend_to_kernel_cls
