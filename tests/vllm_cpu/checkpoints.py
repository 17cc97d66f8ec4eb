"""Small checkpoints with seeded weights, and transformers' own choice of the next token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

VOCABULARY = 256
TOPK = 16
# Equal scores of experts or keys aside, no rounding of float32 moves a logit by more of the scale.
GAP = 1e-3

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
    # With few heads the relu makes exact zeros. They tie, and topk breaks ties in another way.
    "index_n_heads": 64,
    "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    # Larger than usual: the logits lie so far apart that rounding changes no token.
    "initializer_range": 0.2,
    "pad_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
# What released checkpoints have, and transformers does not write.
FIELDS: dict[str, dict[str, Any]] = {
    "DeepseekV32": {"scoring_func": "sigmoid", "topk_method": "noaux_tc"},
    "GlmMoeDsa": {
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "indexer_rope_interleave": True,
    },
}


def make_checkpoint(folder: Path, family: str, fields: Any = None, **changes: Any) -> None:
    """Write a checkpoint of a family; ``fields`` are those that only vLLM reads."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **changes})
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    model.save_pretrained(folder)
    file = folder / "config.json"
    written = {**json.loads(file.read_text()), **FIELDS[family], **(fields or {})}
    file.write_text(json.dumps(written))


def prompts(*lengths: int, seed: int = 0) -> list[list[int]]:
    """Make prompts of random tokens."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]


def load_reference(folder: Path) -> Any:
    """Load transformers' own model. By its class: vLLM registers a config of another."""
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    cls = getattr(transformers, name)
    config = cls.config_class.from_pretrained(folder)
    model = cls.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def worst_gap(reference: Any, prompt: list[int], tokens: list[int]) -> float:
    """Return how far the logit of a token is below the best, as a share of the logits' scale."""
    with torch.no_grad():
        logits = reference(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
    chosen = logits[torch.arange(len(tokens)), torch.tensor(tokens)]
    return float(((logits.amax(-1) - chosen) / logits.abs().max()).max())
