"""Small checkpoints with seeded weights, and transformers' own choice of the next token."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_models import SIZES, VOCABULARY
from torch.overrides import TorchFunctionMode

from examples.vllm_serve.checkpoint import FIELDS as FIELDS_OF_V32

# What released checkpoints have, and transformers does not write.
FIELDS: dict[str, dict[str, Any]] = {
    "DeepseekV32": FIELDS_OF_V32,
    "GlmMoeDsa": {**FIELDS_OF_V32, "indexer_rope_interleave": True},
}


def make_checkpoint(folder: Path, family: str, fields: Any = None, **changes: Any) -> None:
    """Write a checkpoint of a family; ``fields`` are those that only vLLM reads."""
    torch.manual_seed(0)
    # The embedding of a padding token is zeros. All index scores of such a query are equal.
    sizes = {**SIZES, "eos_token_id": 1, "pad_token_id": None, **changes}
    model = getattr(transformers, f"{family}ForCausalLM")(
        getattr(transformers, f"{family}Config")(**sizes)
    )
    for name, values in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            values.normal_(std=0.1)
    model.save_pretrained(folder)
    file = folder / "config.json"
    written = {**json.loads(file.read_text()), **FIELDS[family], **(fields or {})}
    file.write_text(json.dumps(written))


def prompts(*lengths: int, seed: int = 0) -> list[list[int]]:
    """Make prompts of random tokens."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]


def load_reference(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """Load transformers' own model. By its class: vLLM registers a config of another."""
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    cls = getattr(transformers, name)
    config = cls.config_class.from_pretrained(folder)
    model = cls.from_pretrained(folder, config=config, dtype=dtype, attn_implementation="eager")
    return model.eval()


class EqualByPosition(TorchFunctionMode):
    """Takes equal values by position, as our indexer does; the order of torch's topk is open."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.Tensor.topk:
            return func(*args, **kwargs or {})
        values, k = args
        result = values.sort(dim=-1, descending=True, stable=True)
        return torch.return_types.topk(tuple(each[..., :k] for each in result))
