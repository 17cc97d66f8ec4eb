"""Models of transformers with sparse attention and random weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM


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
