"""vLLM's layers with weights of 16 bits, on our ops, where a CPU has no instructions for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import names
from .choice import AMX, BF16, is_x86_without, missing
from .grouped_experts import grouped
from .names import DisableTorchFunctionSubclass


def register() -> None:
    """Ask first which layers are ours where vLLM chooses the product of a layer."""
    theirs = names.utils.dispatch_cpu_unquantized_gemm
    if theirs.__module__ == __name__:
        return

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        # zentorch's product was not compared.
        if not names.current_platform.is_zen_cpu() and _is_served(layer.weight):
            # The op reads the weight where it is.
            layer.cpu_linear = torch.ops.custom_pypto.linear
        else:
            theirs(layer, remove_weight)

    names.utils.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm


class _OfHeads(Tensor):
    """Weights of heads [heads, K, N], which torch.bmm multiplies by; vLLM calls it in a method."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            if func is not torch.bmm or len(args) != 2 or {*(kwargs or ())} != {"out"}:
                return func(*args, **kwargs or {})
            x, weight = args
            out: Tensor = kwargs["out"]
            counts = torch.full(x.shape[:1], x.shape[1], device=x.device)
            found = grouped(x.flatten(0, 1), weight.transpose(1, 2), counts, None, None)
            return out.copy_(found.view(out.shape))


def replace_products_of_heads(attention: Any) -> None:
    """Multiply queries and values of a layer of latent attention by our op."""
    theirs = attention.process_weights_after_loading

    def process_weights_after_loading(act_dtype: Any) -> None:
        theirs(act_dtype)
        for name in ("W_UK_T", "W_UV"):
            weight = getattr(attention, name, None)
            if weight is not None and _is_served(weight[0]):
                delattr(attention, name)
                stored = weight.data.transpose(1, 2)
                if not stored[0].is_contiguous():  # W_UV is where kv_b_proj has it
                    stored = stored.contiguous()
                setattr(attention, name, stored.transpose(1, 2).as_subclass(_OfHeads))

    attention.process_weights_after_loading = process_weights_after_loading


def _is_served(weight: Any) -> bool:
    # Without such instructions oneDNN has no packed product, and torch's takes 1.2 to 9 times as
    # long as ours.
    instructions = {torch.bfloat16: BF16, torch.float16: AMX}.get(weight.dtype)
    if instructions is None or not is_x86_without(instructions):
        return False
    return weight.dim() == 2 and not weight.is_meta and missing("linear") is None
