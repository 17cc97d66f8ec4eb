"""Models of transformers with random weights, and the models that are timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

# Everything but the attention is small.
_SMALL = {"vocab_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}


@dataclass(frozen=True)
class Sized:
    """One layer, whose attention has the size of a released model's: that of the type's defaults.

    `sizes` are those that differ.
    """

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
    sizes = _SMALL | sized.sizes
    return build(sized.model_type, sizes, 0, getattr(torch, dtype), implementation).eval()


def build(
    model_type: str,
    sizes: Mapping[str, int],
    seed: int,
    dtype: torch.dtype,
    implementation: str,
    **options: object,
) -> Any:
    """Return a model without experts, with seeded random weights.

    `options` are further fields of its config.
    """
    config = AutoConfig.for_model(
        model_type,
        **sizes,
        mlp_layer_types=["dense"] * sizes["num_hidden_layers"],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        eos_token_id=None,
        **options,
    )
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=implementation)
