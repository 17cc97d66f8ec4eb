"""What config.json must say, so that vLLM reads the model and a CPU can multiply by its weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import names


def _with_experts(hf: Any) -> range:
    dense = hf.num_hidden_layers
    if getattr(hf, "n_routed_experts", None):
        dense = getattr(hf, "first_k_dense_replace", None) or 0
    return range(dense, hf.num_hidden_layers)


def _routes_otherwise(hf: Any) -> bool:
    fields = (getattr(hf, "scoring_func", None), getattr(hf, "topk_method", None))
    return bool(_with_experts(hf)) and fields != ("sigmoid", "noaux_tc")


def _integer_bits(hf: Any, name: str, layers: range | None = None) -> set[Any]:
    """Return the sizes of the integers that a weight of `layers`, or of all, consists of."""
    found = getattr(hf, "quantization_config", None) or {}
    about = found if isinstance(found, dict) else found.to_dict()
    # compressed-tensors lists groups and exceptions; GPTQ and AWQ have one size for all.
    ignored = [*(about.get("ignore") or ())]
    ignored += [f"re:.*{re.escape(each)}" for each in about.get("modules_to_not_convert") or ()]
    groups = [*(about.get("config_groups") or {}).values()]
    if about.get("quant_method") in ("awq", "gptq"):
        # vLLM reads AWQ's older key, too.
        bits = about.get("bits", about.get("w_bit"))
        groups.append({"targets": ["Linear"], "weights": {"num_bits": bits}})
    numbers = range(hf.num_hidden_layers) if layers is None else layers
    return {
        weights.get("num_bits")
        for group in groups
        if (weights := group.get("weights")) and weights.get("type", "int") == "int"
        for layer in (f"model.layers.{each}.{name}" for each in numbers)
        if _matches(group["targets"], layer) and not _matches(ignored, layer)
    }


def _matches(patterns: Iterable[str], layer: str) -> bool:
    return any(
        re.match(each[3:], layer) if each.startswith("re:") else each in ("Linear", layer)
        for each in patterns
    )


def _lacks_product_of_4_bits(hf: Any) -> bool:
    if 4 not in _integer_bits(hf, "self_attn.o_proj"):
        return False
    names.CpuPlatform.import_kernels()
    return not hasattr(torch.ops._C, "cpu_gemm_wna16")


def _rotates_otherwise(hf: Any) -> bool:
    is_glm = "GlmMoeDsaForCausalLM" in hf.architectures
    return bool(getattr(hf, "indexer_rope_interleave", False)) != is_glm


# Why a checkpoint is refused by its config.json, and what to do.
REFUSALS: dict[Callable[[Any], object], str] = {
    _rotates_otherwise: (
        "tokens would be wrong: in config.json, indexer_rope_interleave must be true for GLM-5, and"
        " false or left out for DeepSeek-V3.2"
    ),
    _routes_otherwise: (
        "vLLM would choose other experts, or stop: in config.json, set scoring_func to sigmoid and"
        " topk_method to noaux_tc"
    ),
    lambda hf: _integer_bits(hf, "mlp.experts.0.gate_proj", _with_experts(hf)): (
        "vLLM has no experts of integer weights on CPUs: leave mlp.experts in 16 bits"
    ),
    lambda hf: _integer_bits(hf, "self_attn.kv_b_proj"): (
        "vLLM cannot split a kv_b_proj of integers on CPUs: leave kv_b_proj in 16 bits"
    ),
    _lacks_product_of_4_bits: (
        "vLLM's kernels for this CPU have no product by weights of 4 bits: use 8 or 16 bits"
    ),
}
