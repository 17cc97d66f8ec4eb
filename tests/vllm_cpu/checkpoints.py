"""Small checkpoints with seeded weights, and transformers' own choice of the next token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_models import SIZES, VOCABULARY

from examples.vllm_serve.checkpoint import FIELDS as FIELDS_OF_V32

# Equal scores of experts or keys aside, no rounding of float32 moves a logit by more of the scale.
GAP = 1e-3

# What released checkpoints have, and transformers does not write.
FIELDS: dict[str, dict[str, Any]] = {
    "DeepseekV32": FIELDS_OF_V32,
    "GlmMoeDsa": {**FIELDS_OF_V32, "indexer_rope_interleave": True},
}


def make_checkpoint(folder: Path, family: str, fields: Any = None, **changes: Any) -> None:
    """Write a checkpoint of a family; ``fields`` are those that only vLLM reads."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, "eos_token_id": 1, **changes})
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
