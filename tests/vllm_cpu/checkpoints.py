"""Small checkpoints with seeded weights, and transformers' own choice of the next token."""

import json
import re
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_models import SIZES, V4_SIZES, VOCABULARY
from torch.overrides import TorchFunctionMode

from examples.vllm_serve.checkpoint import FIELDS as FIELDS_OF_V32

# What released checkpoints have, and transformers does not write.
FIELDS: dict[str, dict[str, Any]] = {
    "DeepseekV32": FIELDS_OF_V32,
    "GlmMoeDsa": {**FIELDS_OF_V32, "indexer_rope_interleave": True},
    "DeepseekV4": {"topk_method": "noaux_tc", "num_hash_layers": 1},
}
# vLLM has DeepSeek-V4 with these sizes only; a layer has no compressor, or one of 128 or 4 tokens.
SIZES_OF_V4: dict[str, Any] = {
    **V4_SIZES,
    "head_dim": 512,
    "partial_rotary_factor": 0.125,
    "index_head_dim": 128,
    "index_topk": 16,
    "sliding_window": 128,
    "compress_rates": None,
    "mlp_layer_types": ["hash_moe", "moe", "moe"],
    "swiglu_limit": 1.0,
}
# transformers' names of weights, and those of released checkpoints.
RELEASED = {
    r"^model\.": "",
    "embed_tokens": "embed",
    "hc_head.hc_": "hc_head_",
    r"attn\.norm": "attn.kv_norm",
}


def make_checkpoint(folder: Path, family: str, fields: Any = None, **changes: Any) -> None:
    """Write a checkpoint of a family; ``fields`` are those that only vLLM reads."""
    torch.manual_seed(0)
    # The embedding of a padding token is zeros. All index scores of such a query are equal.
    own = SIZES_OF_V4 if family == "DeepseekV4" else {}
    sizes = {**SIZES, **own, "eos_token_id": 1, "pad_token_id": None, **changes}
    model = getattr(transformers, f"{family}ForCausalLM")(
        getattr(transformers, f"{family}Config")(**sizes)
    )
    for name, values in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            values.normal_(std=0.1)
        if name.endswith("tid2eid"):
            values.random_(0, model.config.n_routed_experts)
    for name, weight in model.named_parameters():
        if name.endswith(("sinks", "position_bias")):  # zeros otherwise
            torch.nn.init.normal_(weight)
    model.save_pretrained(folder)
    file = folder / "config.json"
    written = {**json.loads(file.read_text()), **FIELDS[family], **(fields or {})}
    if family == "DeepseekV4":
        _write_as_released(folder / "model.safetensors", written)
    file.write_text(json.dumps(written))


def _write_as_released(weights: Path, config: dict[str, Any]) -> None:
    renamed = {}
    for name, value in load_file(weights).items():
        for pattern, text in RELEASED.items():
            name = re.sub(pattern, text, name)
        renamed[name] = value
    save_file(renamed, weights, {"format": "pt"})
    del config["mlp_layer_types"], config["compress_rates"]
    ratios = {"sliding": 0, "heavily": 128, "compressed": 4}
    kinds = [each.partition("_")[0] for each in config.pop("layer_types")]
    config["compress_ratios"] = [ratios[each] for each in kinds]


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
