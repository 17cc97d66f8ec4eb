"""The classes of transformers that are replaced, and their replacements."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from transformers.integrations.sdpa_attention import sdpa_attention_forward

from .attention import LatentAttention, PooledAttention
from .compressed_attention import CompressedAttention
from .fallback import own_attention, warn_once
from .hyper_connections import FusedHyperConnection, HyperConnectedLayer
from .indexer import FusedIndexer, LastRotatedIndexer, ScaledIndexer
from .parts import Parts
from .pooled_indexer import PooledIndexer
from .support import NAME
from .switch import replacements, watch


class Family(NamedTuple):
    """A family of models whose layers are served.

    Attributes:
        folder: in transformers.models.
        prefix: of its PreTrainedModel.
        layers: {class of a layer: its mixin}.
        check: compares what the mixins use of these layers.
        rope: the function that rotates, if a mixin calls it.
        own: classes of attention that stay transformers' own; whole names if of other modules.
    """

    folder: str
    prefix: str
    layers: dict[str, type[Any]]
    check: Callable[[Parts, Family], None]
    rope: str | None = None
    own: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module of the classes."""
        return f"transformers.models.{self.folder}.modeling_{self.folder}"


def serve_families() -> None:
    """Let the families that the installed transformers has switch to our classes and back."""
    common = _difference_of_masks_and_caches()
    for family in FAMILIES:
        try:
            module = importlib.import_module(family.module)
        except ModuleNotFoundError:
            continue
        difference = common or difference_of(family)
        if difference is None:
            for name, mixin in family.layers.items():
                _replace(module, getattr(module, name), mixin, family.rope)
            for name in family.own:
                own_attention[Parts(family.module).find(name)] = sdpa_attention_forward
        base = f"{family.prefix}PreTrainedModel"
        try:
            watch(getattr(module, base), difference)
        except AttributeError:
            message = f"{family.prefix} cannot have attn_implementation='{NAME}'"
            warn_once(str(difference), message)


def _replace(module: Any, original: type[Any], mixin: type[Any], rope: str | None) -> None:
    members: dict[str, Any] = {"original": original, "__module__": __name__}
    members["takes"] = frozenset(inspect.signature(original.forward).parameters)
    if rope is not None:
        members["rope"] = staticmethod(getattr(module, rope))
    ours = type(original.__name__, (mixin, original), members)
    # pickle looks for it here.
    globals()[original.__name__] = replacements[original] = ours
    if mixin is CompressedAttention:
        own_attention[ours] = module.eager_attention_forward


def _difference_of_masks_and_caches() -> str | None:
    parts = Parts("transformers")
    names = "batch_size q_length kv_length q_offset kv_offset mask_function attention_mask device"
    parts.check("masking_utils.sdpa_mask", 0, f"{names} allow_is_causal_skip")
    parts.check("masking_utils.causal_mask_function", 4)
    parts.check("integrations.sdpa_attention.sdpa_attention_forward", 5, "scaling dropout")
    parts.check("cache_utils.Cache.update_indexer", 3)
    return parts.difference()


def difference_of(family: Family) -> str | None:
    """Say in one sentence what the installed release changed of a family; None if nothing."""
    parts = Parts(family.module)
    parts.check("eager_attention_forward", 5, "scaling dropout")
    parts.check(f"{family.prefix}PreTrainedModel.post_init", 1)
    parts.check(f"{family.prefix}PreTrainedModel.set_attn_implementation", 2)
    for name in family.own:
        parts.reads(f"{name}.forward", "get_interface scaling")
    family.check(parts, family)
    return parts.difference()


_LATENT = "config indexer kv_b_proj kv_lora_rank num_heads qk_nope_head_dim qk_rope_head_dim"
_INDEXER = "config head_dim index_topk k_norm layer_idx n_heads weights_proj wk wq_b"


def _check_latent(parts: Parts, family: Family) -> None:
    indexer, attention = family.layers
    mixin = family.layers[indexer]
    sinks = "sinks s_aux" if mixin is LastRotatedIndexer else ""
    scaling = "q_input_norm softmax_scaling use_rope" if mixin is ScaledIndexer else ""
    parts.check(str(family.rope), 4, "unsqueeze_dim")
    parts.check(f"{attention}.expand_kv", like=LatentAttention.expand_kv)
    parts.check(f"{indexer}.forward", like=mixin.forward)
    parts.reads(f"{attention}.forward", f"expand_kv indexer indices scaling dropout {sinks}")
    parts.reads(f"{attention}.__init__", _LATENT)
    parts.reads(f"{indexer}.__init__", f"{_INDEXER} qk_rope_head_dim {scaling}")


def _check_streams(parts: Parts, name: str) -> None:
    parts.check(f"{name}.forward", like=FusedHyperConnection.forward)
    parts.reads(f"{name}.__init__", "fn base scale hc_mult hc_sinkhorn_iters hc_eps input_norm")
    parts.reads(f"{name}.forward", "input_norm linear split sigmoid softmax")


def _check_pooled(parts: Parts, family: Family) -> None:
    indexer, attention, streams = family.layers
    _check_streams(parts, streams)
    masks = PooledAttention.build_attention_mask_from_topk
    parts.check(f"{attention}.expand_kv", like=LatentAttention.expand_kv)
    parts.check(f"{attention}.build_attention_mask_from_topk", like=masks)
    parts.check(f"{indexer}.forward", like=PooledIndexer.forward)
    names = "expand_kv indexer build_attention_mask_from_topk scaling dropout update"
    parts.reads(f"{attention}.forward", names)
    parts.reads(f"{attention}.__init__", _LATENT)
    names = "index_kpool index_kpool_always_select_tail index_kpool_compress_ape"
    parts.reads(f"{indexer}.__init__", f"{_INDEXER} {names} index_kpool_compress_gate")
    parts.reads(f"{indexer}.forward", "cat update_indexer get_pooled_states append_visible_tail")


def _check_compressed(parts: Parts, family: Family) -> None:
    attention, streams, layer = family.layers
    prefix = family.prefix
    _check_streams(parts, streams)
    parts.check(f"{layer}.forward", like=HyperConnectedLayer.forward)
    parts.reads(f"{layer}.forward", "attn_hc self_attn input_layernorm matmul transpose ffn_hc")
    parts.reads(f"{layer}.forward", "mlp post_attention_layernorm input_ids")
    parts.check(str(family.rope), 3, "unsqueeze_dim")
    parts.check(f"{attention}.forward", like=CompressedAttention.forward)
    parts.reads(f"{attention}.forward", "update compressor get_interface reshape o_groups flatten")
    names = "q_a_proj q_a_norm q_b_proj q_b_norm kv_proj kv_norm o_a_proj o_b_proj sinks compressor"
    more = "config layer_idx rope_layer_type num_heads head_dim attention_dropout scaling"
    parts.reads(f"{attention}.__init__", f"{names} {more}")
    names = "compress_rate head_dim kv_proj gate_proj position_bias kv_norm rotary_emb"
    for each in ("HCACompressor", "CSACompressor", "Indexer"):
        parts.reads(f"{prefix}{each}.__init__", names)
        parts.reads(f"{prefix}{each}.forward", "store_compression_weights softmax dtype layer_type")
    parts.reads(f"{prefix}Indexer.__init__", "q_b_proj index_topk scorer")
    parts.reads(f"{prefix}IndexerScorer.__init__", "weights_proj")
    parts.check(f"{prefix}HCACache.store_compression_weights", 4)
    parts.reads(f"{prefix}HCACache.__init__", "compressed_kv entry_count")
    parts.check(f"{prefix}CSACache.update_overlap_state", 5)


_INTERLEAVED = "apply_rotary_pos_emb_interleave"


def _latent(
    folder: str,
    prefix: str,
    mixin: type[FusedIndexer] = FusedIndexer,
    rope: str = "apply_rotary_pos_emb",
    text: str = "",
    own: tuple[str, ...] = (),
) -> Family:
    layers = {f"{prefix}{text}Indexer": mixin, f"{prefix}{text}Attention": LatentAttention}
    return Family(folder, prefix, layers, _check_latent, rope, own)


FAMILIES = (
    _latent("deepseek_v32", "DeepseekV32"),
    _latent("glm_moe_dsa", "GlmMoeDsa", rope=_INTERLEAVED),
    _latent("axk2", "AXK2"),
    _latent("hy_v4", "HYV4", LastRotatedIndexer),
    _latent("hy_v4_vl", "HYV4VL", LastRotatedIndexer, own=("HYV4VLVisionAttention",)),
    _latent(
        "mistral_large4",
        "MistralLarge4",
        ScaledIndexer,
        _INTERLEAVED,
        "Text",
        ("transformers.models.pixtral.modeling_pixtral.PixtralAttention",),
    ),
    _latent(
        "dots3_note",
        "Dots3Note",
        rope=_INTERLEAVED,
        text="Text",
        own=("Dots3NoteVisionAttention", "Dots3NoteAudioAttention"),
    ),
    Family(
        "glm5_next",
        "Glm5Next",
        {
            "Glm5NextTextIndexer": PooledIndexer,
            "Glm5NextTextAttention": PooledAttention,
            "Glm5NextTextHyperConnection": FusedHyperConnection,
        },
        _check_pooled,
        own=("Glm5NextVisionAttention",),
    ),
    Family(
        "deepseek_v4",
        "DeepseekV4",
        {
            "DeepseekV4Attention": CompressedAttention,
            "DeepseekV4HyperConnection": FusedHyperConnection,
            "DeepseekV4DecoderLayer": HyperConnectedLayer,
        },
        _check_compressed,
        "apply_rotary_pos_emb",
    ),
)
