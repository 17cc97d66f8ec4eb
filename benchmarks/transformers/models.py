"""The models that are timed: one layer, whose attention has the size of a released model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

# Everything but the attention is small.
_ONE_LAYER = {
    "vocab_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "mlp_layer_types": ["dense"],
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "eos_token_id": None,
}


@dataclass(frozen=True)
class Sized:
    """A model type of transformers, and where its sizes differ from that type's defaults."""

    text: str
    model_type: str
    sizes: dict[str, int]


MODELS = {
    "deepseek": Sized("DeepSeek-V3.2", "deepseek_v32", {}),
    "glm": Sized("GLM-5", "glm_moe_dsa", {}),
    # For tests: every part runs, in milliseconds.
    "tiny": Sized(
        "tiny",
        "deepseek_v32",
        {
            "hidden_size": 128,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "q_lora_rank": 64,
            "kv_lora_rank": 64,
            "qk_nope_head_dim": 32,
            "qk_rope_head_dim": 16,
            "v_head_dim": 32,
            "index_n_heads": 8,
            "index_head_dim": 32,
            "index_topk": 64,
        },
    ),
}
DEFAULT = ("deepseek", "glm")
DTYPES = ("bfloat16", "float32")


def make(name: str, dtype: str, implementation: str = "eager") -> Any:
    """Return a model with seeded weights; the same ones for every implementation."""
    sized = MODELS[name]
    config = AutoConfig.for_model(sized.model_type, **_ONE_LAYER, **sized.sizes)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(
        config, dtype=getattr(torch, dtype), attn_implementation=implementation
    ).eval()


def weight_bytes(name: str, dtype: str) -> int:
    """Return the size of the weights of every matrix product, which a step reads from memory."""
    with torch.device("meta"):
        modules = make(name, dtype).modules()
    linears = (module for module in modules if isinstance(module, torch.nn.Linear))
    return sum(module.weight.numel() * module.weight.element_size() for module in linears)
