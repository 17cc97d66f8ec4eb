"""A small DeepSeek-V3.2 with seeded weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {
    "vocab_size": 512,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": 192,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    # With few heads, many scores are exactly zero: which of these keys are selected is arbitrary.
    "index_n_heads": 64,
    "index_head_dim": 32,
    "index_topk": 256,
}


def make(seed: int) -> Any:
    """Return a model in fp32, so that the order of additions changes no token."""
    config = AutoConfig.for_model(
        "deepseek_v32",
        **SIZES,
        # No experts: rounding could change their choice too.
        mlp_layer_types=["dense"] * SIZES["num_hidden_layers"],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        # Larger than usual, so that attention matters.
        initializer_range=0.1,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def make_prompt(length: int, seed: int) -> torch.Tensor:
    """Return random tokens [1, length]; a longer prompt begins with a shorter one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, SIZES["vocab_size"], (1, length), generator=generator)
