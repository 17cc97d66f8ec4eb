"""Models of transformers with sparse attention and random weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

VISION = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32}


def build(
    model_type: str,
    sizes: Mapping[str, Any],
    seed: int,
    dtype: torch.dtype,
    implementation: str,
    **options: object,
) -> Any:
    """Return a model with seeded random weights; it has no experts where its family can be without.

    `options` are further fields of its config.
    """
    fields: dict[str, Any] = {
        "mlp_layer_types": ["dense"] * sizes["num_hidden_layers"],
        "eos_token_id": None,
        **sizes,
        **options,
    }
    made: Any = AutoModelForCausalLM
    if model_type in ("glm5_next", "mistral_large4"):
        made = AutoModelForImageTextToText
        vision = {**VISION, "out_hidden_size": sizes["hidden_size"]}
        fields = {"text_config": fields, "vision_config": vision}
    config = AutoConfig.for_model(model_type, **fields)
    torch.manual_seed(seed)
    return made.from_config(config, dtype=dtype, attn_implementation=implementation)
