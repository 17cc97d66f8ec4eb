"""The classes of transformers that are replaced, and their replacements."""

from __future__ import annotations

import importlib
from typing import Any

from .attention import LatentAttention
from .indexer import FusedIndexer
from .parts import Parts, parameters
from .switch import replacements, watch

# Families whose layers compute the same as DeepSeek-V3.2's, up to the order of the rope: the folder
# in transformers.models, the prefix of the classes, and the function that rotates.
FAMILIES = (
    ("deepseek_v32", "DeepseekV32", "apply_rotary_pos_emb"),
    ("glm_moe_dsa", "GlmMoeDsa", "apply_rotary_pos_emb_interleave"),
    ("axk2", "AXK2", "apply_rotary_pos_emb"),
)


def serve_families() -> None:
    """Let the families that the installed transformers has switch to our classes and back."""
    common = _difference_of_masks_and_caches()
    for folder, prefix, rotate in FAMILIES:
        try:
            name = f"transformers.models.{folder}.modeling_{folder}"
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        difference = common or _difference_of_layers(name, prefix, rotate)
        if difference is None:
            indexer = getattr(module, f"{prefix}Indexer")
            rope = staticmethod(getattr(module, rotate))
            _replace(indexer, FusedIndexer, rope=rope, takes=parameters(indexer.forward))
            _replace(getattr(module, f"{prefix}Attention"), LatentAttention)
        watch(getattr(module, f"{prefix}PreTrainedModel"), difference)


def _replace(original: type[Any], mixin: type[Any], **members: Any) -> None:
    members = {"original": original, "__module__": __name__, **members}
    ours = type(original.__name__, (mixin, original), members)
    # pickle looks for it here.
    globals()[original.__name__] = replacements[original] = ours


def _difference_of_masks_and_caches() -> str | None:
    masks = Parts("transformers.masking_utils")
    masks.calls(
        "sdpa_mask",
        0,
        *("batch_size", "q_length", "kv_length", "q_offset", "kv_offset", "mask_function"),
        *("attention_mask", "device", "allow_is_causal_skip"),
    )
    masks.calls("causal_mask_function", 4)
    sdpa = Parts("transformers.integrations.sdpa_attention")
    sdpa.calls("sdpa_attention_forward", 5, "scaling", "dropout")
    caches = Parts("transformers.cache_utils")
    caches.calls("Cache.update_indexer", 3)
    return masks.difference() or sdpa.difference() or caches.difference()


def _difference_of_layers(module: str, prefix: str, rotate: str) -> str | None:
    parts, attention, indexer = Parts(module), f"{prefix}Attention", f"{prefix}Indexer"
    parts.calls(rotate, 4, "unsqueeze_dim")
    parts.calls("eager_attention_forward", 5, "scaling", "dropout")
    parts.calls(f"{attention}.expand_kv", 3)
    parts.replaces(f"{attention}.expand_kv", LatentAttention.expand_kv)
    parts.reads(f"{attention}.forward", "expand_kv", "indexer", "indices", "scaling", "dropout")
    parts.reads(
        f"{attention}.__init__",
        *("config", "indexer", "kv_b_proj", "kv_lora_rank", "num_heads"),
        *("qk_nope_head_dim", "qk_rope_head_dim"),
    )
    parts.replaces(f"{indexer}.forward", FusedIndexer.forward)
    parts.reads(
        f"{indexer}.__init__",
        *("config", "head_dim", "index_topk", "k_norm", "layer_idx", "n_heads"),
        *("qk_rope_head_dim", "weights_proj", "wk", "wq_b"),
    )
    return parts.difference()
