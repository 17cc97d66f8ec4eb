"""A tiny DeepSeek-V3.2 whose tokens are bytes."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 32,
    "index_n_heads": 8,
    "index_head_dim": 16,
}


def make(seed: int, top_k: int) -> Any:
    """Return a model in fp32 that attends to `top_k` tokens, with seeded weights."""
    config = AutoConfig.for_model(
        "deepseek_v32",
        **SIZES,
        index_topk=top_k,
        # No experts: two layers are too few to balance them.
        mlp_layer_types=["dense"] * SIZES["num_hidden_layers"],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation="custom_pypto"
    ).train()


def attend_to(model: Any, top_k: int) -> None:
    """Change how many tokens each token attends to."""
    model.config.index_topk = top_k
    for layer in model.model.layers:
        layer.self_attn.indexer.index_topk = top_k
