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


def _is_v4(hf: Any) -> bool:
    return names.V4 in hf.architectures


def _routes_otherwise(hf: Any) -> bool:
    fields = (getattr(hf, "scoring_func", None), getattr(hf, "topk_method", None))
    return not _is_v4(hf) and bool(_with_experts(hf)) and fields != ("sigmoid", "noaux_tc")


def _routes_otherwise_than_v4(hf: Any) -> bool:
    fields = (getattr(hf, "scoring_func", "sqrtsoftplus"), getattr(hf, "topk_method", None))
    return _is_v4(hf) and fields != ("sqrtsoftplus", "noaux_tc")


def _formats(hf: Any, name: str, layers: range | None = None) -> set[tuple[str, Any, bool]]:
    """Return type, bits, and whether in blocks, of a quantised weight of `layers` or of all."""
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
        groups.append({"targets": ["Linear"], "weights": {"num_bits": bits}})
    if about.get("quant_method") == "fp8":
        strategy = "block" if about.get("weight_block_size") else "tensor"
        weights = {"type": "float", "num_bits": 8, "strategy": strategy}
        groups.append({"targets": ["Linear"], "weights": weights})
    numbers = range(hf.num_hidden_layers) if layers is None else layers
    return {
        (weights.get("type", "int"), weights.get("num_bits"), weights.get("strategy") == "block")
        for group in groups
        if (weights := group.get("weights"))
        for layer in (f"model.layers.{each}.{name}" for each in numbers)
        if _matches(group["targets"], layer) and not _matches(ignored, layer)
    }


def _matches(patterns: Iterable[str], layer: str) -> bool:
    return any(
        re.match(each[3:], layer) if each.startswith("re:") else each in ("Linear", layer)
        for each in patterns
    )


def _lacks_experts(hf: Any) -> bool:
    has_amx = torch.cpu._is_amx_tile_supported()
    formats = _formats(hf, "mlp.experts.0.gate_proj", _with_experts(hf))
    return any(not (blocks and has_amx) for _, _, blocks in formats)


def _lacks_product_of_blocks(hf: Any) -> bool:
    formats = _formats(hf, "self_attn.o_proj")
    return not torch.cpu._is_amx_tile_supported() and any(blocks for _, _, blocks in formats)


def _lacks_product_of_4_bits(hf: Any) -> bool:
    if ("int", 4, False) not in _formats(hf, "self_attn.o_proj"):
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
    _routes_otherwise_than_v4: (
        "vLLM would choose other experts, or stop: in config.json, set scoring_func to sqrtsoftplus"
        " and topk_method to noaux_tc"
    ),
    _lacks_experts: (
        "quantised experts are served only in blocks of fp8, on CPUs with AMX: leave mlp.experts"
        " in 16 bits"
    ),
    _lacks_product_of_blocks: (
        "vLLM multiplies by weights in blocks only on CPUs with AMX: convert the checkpoint to"
        " bfloat16"
    ),
    lambda hf: any(kind == "int" for kind, _, _ in _formats(hf, "self_attn.kv_b_proj")): (
        "vLLM cannot split a kv_b_proj of integers on CPUs: leave kv_b_proj in 16 bits"
    ),
    _lacks_product_of_4_bits: (
        "vLLM's kernels for this CPU have no product by weights of 4 bits: use 8 or 16 bits"
    ),
}
