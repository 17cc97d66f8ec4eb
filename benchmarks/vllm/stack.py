"""Checkpoints without weights, for which vLLM draws seeded ones: layers of DeepSeek-V3.2's size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Each layer has the sizes of one of the first three of the released model, which have no experts.
# The vocabulary is small, so that a step is that of its layers.
RELEASED: dict[str, Any] = {
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 1024,
}
# For tests: every part runs, in milliseconds. vLLM's kernel for dense MLA takes no other latents.
TINY = RELEASED | {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
}
_INDEXER = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
_OTHERS: dict[str, Any] = {
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 2,
    "first_k_dense_replace": 2,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "rope_theta": 10000,
    "rope_scaling": {
        "type": "yarn",
        "factor": 40,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def write(folder: Path, *, is_sparse: bool, is_tiny: bool) -> None:
    """Write the config of two layers, with sparse attention or with the dense one of V3."""
    sizes = TINY if is_tiny else RELEASED
    name, kind = ("DeepseekV32ForCausalLM", "deepseek_v32") if is_sparse else _DENSE
    config = {**_OTHERS, **sizes, **(_INDEXER if is_sparse else {})}
    config |= {"architectures": [name], "model_type": kind}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


_DENSE = ("DeepseekV3ForCausalLM", "deepseek_v3")


def cache_bytes(requests: int, tokens: int, *, is_sparse: bool) -> int:
    """Return the size of the caches of all layers."""
    row = RELEASED["kv_lora_rank"] + RELEASED["qk_rope_head_dim"]
    row += _INDEXER["index_head_dim"] if is_sparse else 0
    # What requests add while they are timed takes a block or two each.
    size: int = requests * (tokens + 256) * _OTHERS["num_hidden_layers"] * row * 2
    return size
