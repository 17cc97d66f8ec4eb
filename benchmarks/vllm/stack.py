"""Checkpoints without weights, for which vLLM draws seeded ones: layers of DeepSeek-V3.2's size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYERS = 2
HEADS, LATENT, ROPE = 128, 512, 64
INDEX_HEADS, INDEX_SIZE, TOPK = 64, 128, 2048

# The released sizes, but a small vocabulary: a step is that of its layers. transformers' config has
# the same defaults. As in the first layers of the released model, no layer has experts.
_CONFIG: dict[str, Any] = {
    "torch_dtype": "bfloat16",
    "vocab_size": 1024,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "q_lora_rank": 1536,
    "kv_lora_rank": LATENT,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": ROPE,
    "v_head_dim": 128,
    "max_position_embeddings": 163840,
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
}
_DENSE = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"}
_SPARSE = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "index_n_heads": INDEX_HEADS,
    "index_head_dim": INDEX_SIZE,
    "index_topk": TOPK,
}
# For tests: every part runs, in milliseconds. vLLM's reference MLA takes no other latents.
_TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
}


def write(folder: Path, *, is_sparse: bool, is_tiny: bool) -> None:
    """Write the config of a model with sparse attention, or with the dense one of V3."""
    config = _CONFIG | (_SPARSE if is_sparse else _DENSE) | (_TINY if is_tiny else {})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def cache_bytes(requests: int, tokens: int, *, is_sparse: bool) -> int:
    """Return the size of the caches of all layers."""
    row = LATENT + ROPE + (INDEX_SIZE if is_sparse else 0)
    # What requests add while they are timed takes a block or two each.
    return requests * (tokens + 256) * LAYERS * row * 2
