"""A small DeepSeek-V3.2 with seeded weights and a tokenizer of bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import DeepseekV32Config, DeepseekV32ForCausalLM, PreTrainedTokenizerFast

SIZES: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 3,
    "first_k_dense_replace": 1,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "kv_lora_rank": 128,
    "q_lora_rank": 96,
    "qk_rope_head_dim": 32,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "index_topk": 64,
    "index_head_dim": 64,
    "index_n_heads": 64,
    "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    # Larger than usual: the logits lie so far apart that rounding changes no token.
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
# What vLLM reads and transformers does not write; docs/vllm.md lists them.
FIELDS = {"scoring_func": "sigmoid", "topk_method": "noaux_tc"}
# Without equal index scores, no rounding of float32 moves a logit by more of the scale.
GAP = 1e-3


def write(folder: Path, seed: int, **sizes: Any) -> Any:
    """Write a checkpoint, and return transformers' own model of it; ``sizes`` are other ones."""
    torch.manual_seed(seed)
    config = DeepseekV32Config(**{**SIZES, **sizes})
    config._attn_implementation = "eager"
    model = DeepseekV32ForCausalLM(config).float().eval()
    model.save_pretrained(folder)
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **FIELDS}))
    _write_tokenizer(folder)
    return model


def _write_tokenizer(folder: Path) -> None:
    """A token is a byte, so that every text has tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({each: i for i, each in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


def full_forward(model: Any, prompt: list[int], tokens: list[int]) -> torch.Tensor:
    """Return the logits [tokens, vocabulary] from which each token after a prompt is chosen."""
    with torch.no_grad():
        logits: torch.Tensor = model(torch.tensor([prompt + tokens])).logits
    return logits[0, len(prompt) - 1 : -1]


def gap(logits: torch.Tensor, tokens: list[int]) -> float:
    """Return how far a token's logit is below the best one, as a share of the largest."""
    chosen = logits[torch.arange(len(tokens)), torch.tensor(tokens)]
    return float(((logits.amax(-1) - chosen) / logits.abs().max()).max())


def full_forward_gap(model: Any, prompt: list[int], tokens: list[int]) -> float:
    """Return the gap of tokens to the best ones of a full forward."""
    return gap(full_forward(model, prompt, tokens), tokens)
