"""The classes of transformers that are replaced, and their replacements."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from .attention import LatentAttention
from .fallback import warn_once
from .indexer import FusedIndexer
from .parts import Parts
from .support import NAME
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
            takes = frozenset(inspect.signature(indexer.forward).parameters)
            _replace(indexer, FusedIndexer, rope=rope, takes=takes)
            _replace(getattr(module, f"{prefix}Attention"), LatentAttention)
        try:
            watch(getattr(module, f"{prefix}PreTrainedModel"), difference)
        except AttributeError:
            warn_once(str(difference), f"{prefix} cannot have attn_implementation='{NAME}'")


def _replace(original: type[Any], mixin: type[Any], **members: Any) -> None:
    members = {"original": original, "__module__": __name__, **members}
    ours = type(original.__name__, (mixin, original), members)
    # pickle looks for it here.
    globals()[original.__name__] = replacements[original] = ours


def _difference_of_masks_and_caches() -> str | None:
    parts = Parts("transformers")
    names = "batch_size q_length kv_length q_offset kv_offset mask_function attention_mask device"
    parts.check("masking_utils.sdpa_mask", 0, f"{names} allow_is_causal_skip")
    parts.check("masking_utils.causal_mask_function", 4)
    parts.check("integrations.sdpa_attention.sdpa_attention_forward", 5, "scaling dropout")
    parts.check("cache_utils.Cache.update_indexer", 3)
    return parts.difference()


def _difference_of_layers(module: str, prefix: str, rotate: str) -> str | None:
    parts, attention, indexer = Parts(module), f"{prefix}Attention", f"{prefix}Indexer"
    parts.check(rotate, 4, "unsqueeze_dim")
    parts.check("eager_attention_forward", 5, "scaling dropout")
    parts.check(f"{prefix}PreTrainedModel.post_init", 1)
    parts.check(f"{prefix}PreTrainedModel.set_attn_implementation", 2)
    parts.check(f"{attention}.expand_kv", like=LatentAttention.expand_kv)
    parts.check(f"{indexer}.forward", like=FusedIndexer.forward)
    parts.reads(f"{attention}.forward", "expand_kv indexer indices scaling dropout")
    names = "config indexer kv_b_proj kv_lora_rank num_heads qk_nope_head_dim qk_rope_head_dim"
    parts.reads(f"{attention}.__init__", names)
    names = "config head_dim index_topk k_norm layer_idx n_heads qk_rope_head_dim weights_proj"
    parts.reads(f"{indexer}.__init__", f"{names} wk wq_b")
    return parts.difference()
