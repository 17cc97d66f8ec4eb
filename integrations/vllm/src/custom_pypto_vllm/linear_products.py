"""vLLM's linear layers with weights of 16 bits, on linear, where a CPU cannot multiply them."""

from __future__ import annotations

import platform
from typing import Any

import torch

from . import names
from .weight_products import missing


def register() -> None:
    """Ask first which layers are ours where vLLM chooses the product of a layer."""
    theirs = names.dispatch_cpu_unquantized_gemm
    if theirs.__module__ == __name__:
        return

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        if _is_served(layer.weight):
            # The op reads the weight where it is.
            layer.cpu_linear = torch.ops.custom_pypto.linear
        else:
            theirs(layer, remove_weight)

    theirs.__globals__[theirs.__name__] = dispatch_cpu_unquantized_gemm


def _is_served(weight: Any) -> bool:
    # Without such instructions oneDNN has no packed product, and torch's takes 1.2 to 9 times as
    # long as ours. Arm was not compared.
    has_product = {
        torch.bfloat16: torch.cpu._is_avx512_bf16_supported(),
        torch.float16: torch.cpu._is_amx_tile_supported(),
    }.get(weight.dtype, True)
    if has_product or platform.machine() != "x86_64":
        return False
    return weight.dim() == 2 and not weight.is_meta and missing("linear") is None
