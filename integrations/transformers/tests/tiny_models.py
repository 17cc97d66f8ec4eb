"""Models small enough that a test makes and runs one in a moment, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AXK2Config,
    DeepseekV32Config,
    GlmMoeDsaConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

CONFIGS = {"deepseek_v32": DeepseekV32Config, "glm_moe_dsa": GlmMoeDsaConfig, "axk2": AXK2Config}
FAMILIES = ("deepseek_v32", "glm_moe_dsa")

VOCABULARY = 256
TOPK = 16
PAD = 2

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 2,
    "first_k_dense_replace": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "kv_lora_rank": 48,
    "q_lora_rank": 40,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 24,
    "index_topk": TOPK,
    "index_head_dim": 32,
    # With few heads the relu makes exact zeros, which tie; ties are broken otherwise than by topk.
    "index_n_heads": 64,
    "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    # Larger than usual: logits that lie apart, so that rounding turns no token.
    "initializer_range": 0.2,
    "pad_token_id": PAD,
    "bos_token_id": 0,
    "eos_token_id": None,
}

# Without experts nothing depends on data, so that the whole model is one graph.
DENSE = {"first_k_dense_replace": SIZES["num_hidden_layers"]}


def make_config(family: str, **changes: Any) -> PreTrainedConfig:
    config = CONFIGS[family](**{**SIZES, **changes})
    assert isinstance(config, PreTrainedConfig)
    return config


def make_model(
    family: str,
    dtype: torch.dtype = torch.float32,
    *,
    seed: int = 0,
    implementation: str = "custom_pypto",
    **changes: Any,
) -> Any:
    """Give a model of a family for inference."""
    torch.manual_seed(seed)
    config = make_config(family, **changes)
    made = AutoModelForCausalLM.from_config(
        config, dtype=dtype, attn_implementation=implementation
    ).eval()
    assert isinstance(made, PreTrainedModel)
    return made


def prompt(batch: int, tokens: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(PAD + 1, VOCABULARY, (batch, tokens), generator=generator)


def under(implementation: str, model: Any, call: Callable[[], Any]) -> Any:
    """What ``call`` returns while the model has another implementation."""
    before = model.config._attn_implementation
    model.set_attn_implementation(implementation)
    try:
        return call()
    finally:
        model.set_attn_implementation(before)


def padding(tokens: int, *spans: tuple[int, int]) -> Tensor:
    """Give a mask [B, tokens] whose row has ones from ``begin`` to ``end - 1``."""
    position = torch.arange(tokens)
    rows = [(position >= begin) & (position < end) for begin, end in spans]
    return torch.stack(rows).long()


def assert_close(got: Tensor, wanted: Tensor, relative: float = 1e-4) -> None:
    """Compare by the scale of all that is wanted, not element by element."""
    assert got.shape == wanted.shape
    assert got.isfinite().all()
    error = (got - wanted).abs().max() / wanted.abs().max()
    assert error <= relative, f"{error:.2e} of the scale apart"
