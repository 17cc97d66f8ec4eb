"""What config.json must say, so that vLLM reads the model and a CPU can multiply by its weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from . import names
from .choice import AMX, has

# The contract of the product by integers: groups have a multiple of so many numbers.
GROUP_MULTIPLE = 32
_PACKED = "pack-quantized"


def _with_experts(hf: Any) -> range:
    dense = hf.num_hidden_layers
    if getattr(hf, "n_routed_experts", None):
        dense = getattr(hf, "first_k_dense_replace", None) or 0
    return range(dense, hf.num_hidden_layers)


def _is_v4(hf: Any) -> bool:
    return names.V4 in hf.architectures


def _routes_otherwise(hf: Any) -> bool:
    fields = (getattr(hf, "scoring_func", None), getattr(hf, "topk_method", None))
    return not _is_v4(hf) and bool(_with_experts(hf)) and fields != ("sigmoid", "noaux_tc")


def _routes_otherwise_than_v4(hf: Any) -> bool:
    fields = (getattr(hf, "scoring_func", "sqrtsoftplus"), getattr(hf, "topk_method", None))
    return _is_v4(hf) and fields != ("sqrtsoftplus", "noaux_tc")


class _Format(NamedTuple):
    kind: str
    bits: Any
    in_blocks: bool
    has_product: bool
    """Whether an op takes it, and vLLM can split a kv_b_proj of it."""
    has_experts: bool
    """Whether the op for experts takes it."""


def _formats(hf: Any, name: str, layers: range | None = None) -> set[_Format]:
    """Return the formats of a quantised weight of `layers` or of all."""
    found = getattr(hf, "quantization_config", None) or {}
    about = found if isinstance(found, dict) else found.to_dict()
    # compressed-tensors lists groups and exceptions; other methods have one format for all.
    ignored = [*(about.get("ignore") or ())]
    for key in ("modules_to_not_convert", "ignored_layers"):
        ignored += [f"re:.*{re.escape(each)}" for each in about.get(key) or ()]
    groups = [*(about.get("config_groups") or {}).values()]
    if about.get("quant_method") in ("awq", "gptq"):
        # vLLM reads AWQ's older key, too.
        bits = about.get("bits", about.get("w_bit"))
        size = about.get("group_size", about.get("q_group_size"))
        weights = {"num_bits": bits, "group_size": size}
        groups.append({"targets": ["Linear"], "weights": weights, "format": _PACKED})
    if about.get("quant_method") == "fp8":
        strategy = "block" if about.get("weight_block_size") else "tensor"
        weights = {"type": "float", "num_bits": 8, "strategy": strategy}
        groups.append({"targets": ["Linear"], "weights": weights})
    numbers = range(hf.num_hidden_layers) if layers is None else layers
    return {
        _Format(
            weights.get("type", "int"),
            weights.get("num_bits"),
            weights.get("strategy") == "block",
            has_product := _has_product(group.get("format") or about.get("format"), group),
            has_product and bool(weights.get("group_size") or group.get("input_activations")),
        )
        for group in groups
        if (weights := group.get("weights"))
        for layer in (f"model.layers.{each}.{name}" for each in numbers)
        if _matches(group["targets"], layer) and not _matches(ignored, layer)
    }


def _has_product(form: Any, group: dict[str, Any]) -> bool:
    weights, inputs = group["weights"], group.get("input_activations")
    size, bits = weights.get("group_size") or -1, weights.get("num_bits")
    if weights.get("type", "int") != "int" or (size != -1 and size % GROUP_MULTIPLE):
        return False
    if not inputs:
        return form == _PACKED and bits in (4, 8)
    # kv_b_proj is split by its product with ones, which static scales would clamp.
    is_dynamic = inputs.get("dynamic") is True and inputs.get("symmetric", True)
    return is_dynamic and bits == inputs.get("num_bits") == 8


def _matches(patterns: Iterable[str], layer: str) -> bool:
    return any(
        re.match(each[3:], layer) if each.startswith("re:") else each in ("Linear", layer)
        for each in patterns
    )


def _lacks_experts(hf: Any) -> bool:
    formats = _formats(hf, "mlp.experts.0.gate_proj", _with_experts(hf))
    return any(not (each.has_experts or (each.in_blocks and has(AMX))) for each in formats)


def _lacks_product_of_blocks(hf: Any) -> bool:
    return not has(AMX) and any(each.in_blocks for each in _formats(hf, "self_attn.o_proj"))


def _lacks_product_of_4_bits(hf: Any) -> bool:
    formats = _formats(hf, "self_attn.o_proj")
    if all(each.kind != "int" or each.bits != 4 or each.has_product for each in formats):
        return False
    names.CpuPlatform.import_kernels()
    return not hasattr(torch.ops._C, "cpu_gemm_wna16")


def _lacks_split(hf: Any) -> bool:
    formats = _formats(hf, "self_attn.kv_b_proj")
    return any(each.kind == "int" and not each.has_product for each in formats)


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
    _routes_otherwise_than_v4: (
        "vLLM would choose other experts, or stop: in config.json, set scoring_func to sqrtsoftplus"
        " and topk_method to noaux_tc"
    ),
    _lacks_experts: (
        "quantised experts need integers in groups of a multiple of 32, or int8 with dynamic int8"
        " activations, or, with AMX, blocks of fp8: leave mlp.experts in 16 bits"
    ),
    _lacks_product_of_blocks: (
        "vLLM multiplies by weights in blocks only on CPUs with AMX: convert the checkpoint to"
        " bfloat16"
    ),
    _lacks_split: (
        "vLLM cannot split a kv_b_proj of such integers on CPUs: leave kv_b_proj in 16 bits"
    ),
    _lacks_product_of_4_bits: (
        "vLLM's kernels for this CPU have no product by such weights of 4 bits: use groups of a"
        f" multiple of {GROUP_MULTIPLE}, and activations of 16 bits"
    ),
}
