"""Small models with seeded weights, and how tests compare them with transformers' own attention."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    DynamicCache,
    LlamaConfig,
    StaticCache,
)
from transformers.masking_utils import create_causal_mask

from examples.vllm_serve.checkpoint import SIZES as LARGER_SIZES


def _that_exist(*families: str) -> tuple[str, ...]:
    """Leave out the families that the installed release is too old for."""
    return tuple(each for each in families if each in CONFIG_MAPPING)


# Their layers select tokens by their own keys.
FAMILIES = ("deepseek_v32", "glm_moe_dsa")
# Their layers do too, and have sinks, scaled queries, shared keys or windows beside it.
LATER = _that_exist("hy_v4", "hy_v4_vl", "mistral_large4", "dots3_note_text")
# Their layers select rows that stand for several tokens.
WITH_ROWS = _that_exist("deepseek_v4", "glm5_next")
EVERY_FAMILY = pytest.mark.parametrize("model", FAMILIES + LATER + WITH_ROWS, indirect=True)


def every_family_and_cache(*kinds: str) -> pytest.MarkDecorator:
    """Run a test with each family and kind of cache that transformers has."""
    pairs = [
        (family, kind)
        for family in FAMILIES + LATER + WITH_ROWS
        for kind in kinds
        if (family, kind) != ("deepseek_v4", "static")
    ]
    return pytest.mark.parametrize(("model", "cache"), pairs, indirect=["model"])


# What models call their cache: the second since transformers 5.24, where the first warns.
(CACHE,) = {"past_key_values", "cache"} & inspect.signature(create_causal_mask).parameters.keys()

VOCABULARY = 256
TOPK = 16
PAD = 2

SIZES: dict[str, Any] = {
    **LARGER_SIZES,
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 2,
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 4),
    "kv_lora_rank": 48,
    "q_lora_rank": 40,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "index_topk": TOPK,
    # The heads are many: with few the relu makes exact zeros. They tie, and topk breaks ties in
    # another way.
    "index_head_dim": 32,
    "pad_token_id": PAD,
    "eos_token_id": None,
}
YARN: dict[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 40.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}

V4_SIZES: dict[str, Any] = {
    "head_dim": 32,
    "num_hidden_layers": 3,
    "layer_types": [
        "sliding_attention",
        "heavily_compressed_attention",
        "compressed_sparse_attention",
    ],
    "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
    "mlp_layer_types": ["moe"] * 3,
    "partial_rotary_factor": 0.25,
    "o_groups": 2,
    "o_lora_rank": 32,
    "index_topk": 4,
    "sliding_window": 12,
    "rope_parameters": {**YARN, "factor": 16.0, "original_max_position_embeddings": 65536},
}
HY_SIZES: dict[str, Any] = {
    "n_group": 1,
    "mlp_layer_types": ["dense", "sparse"],
    "indexer_types": ["full", "full"],
}
OF_FAMILY = {
    "deepseek_v4": V4_SIZES,
    "glm5_next": {
        "qk_rope_head_dim": 0,
        "rope_parameters": None,
        "n_group": 1,
        "linear_head_dim": 16,
        "linear_num_heads": 4,
        "index_kpool": 4,
        "layer_types": ["linear_attention", "indexed_attention"],
        "mlp_layer_types": ["dense", "sparse"],
        "indexer_types": ["full", "full"],
    },
    "hy_v4": HY_SIZES,
    "hy_v4_vl": {
        **HY_SIZES,
        "rope_parameters": {**SIZES["rope_parameters"], "mrope_section": [4, 2, 2]},
    },
    "mistral_large4": {
        "num_hidden_layers": 3,
        "mlp_layer_types": ["dense", "sparse", "dense"],
        "indexer_types": ["full", "full", "shared"],
        "no_rope_layers": [1, 0, 1],
        "kv_source_layers": [0, 1, 0],
        "n_group": 1,
    },
    "dots3_note_text": {
        "num_hidden_layers": 2,
        "layer_types": ["indexed_attention", "sliding_attention"],
        "sliding_window": 12,
        "rope_parameters": None,
        "head_dim": 48,
        "swa_num_attention_heads": 2,
        "swa_num_key_value_heads": 2,
        "swa_q_lora_rank": 40,
        "swa_kv_lora_rank": 32,
        "swa_head_dim": 24,
        "swa_qk_nope_head_dim": 16,
        "swa_v_head_dim": 16,
    },
}
VISION: dict[str, dict[str, Any]] = {
    "glm5_next": {"depth": 1, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 64},
    "mistral_large4": {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2},
    "hy_v4_vl": {"num_hidden_layers": 1, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 64},
}

# Without experts no operation depends on data, and the whole model is one graph.
# DeepSeek-V4 has experts in each layer, here all for each token.
DENSE = {
    "first_k_dense_replace": SIZES["num_hidden_layers"],
    "num_experts_per_tok": SIZES["n_routed_experts"],
}


def make_config(family: str, **changes: Any) -> Any:
    sizes = {**SIZES, **OF_FAMILY.get(family, {}), **changes}
    if (vision := VISION.get(family)) is None:
        return AutoConfig.for_model(family, **sizes)
    vision = {"intermediate_size": 32, **vision}
    config = AutoConfig.for_model(family, text_config=sizes, vision_config=vision)
    config.dtype = sizes.get("dtype")
    return config


def make_model(
    family: str,
    dtype: torch.dtype = torch.float32,
    *,
    seed: int = 0,
    implementation: str = "custom_pypto",
    **changes: Any,
) -> Any:
    """Make a model of a family for inference."""
    torch.manual_seed(seed)
    config = make_config(family, **changes)
    made = AutoModelForImageTextToText if family in VISION else AutoModelForCausalLM
    model = made.from_config(config, dtype=dtype, attn_implementation=implementation).eval()
    for name, weight in model.named_parameters():
        # transformers makes zeros of these.
        if name.endswith(("sinks", "position_bias", "compress_ape", "scaling.scale")):
            nn.init.normal_(weight)
    return model


def make_llama(implementation: str) -> Any:
    """Make a model that has no indexer."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        pad_token_id=PAD,
    )
    return AutoModelForCausalLM.from_config(config, attn_implementation=implementation).eval()


def make_cache(kind: str, config: Any) -> Any:
    """Make a cache; a static one has room for more tokens than the tests use."""
    # test_inert needs this module without ours.
    from custom_pypto_transformers import GrowingCache

    if kind == "static":
        return StaticCache(config=config, max_cache_len=69)
    return {"dynamic": DynamicCache, "growing": GrowingCache}[kind](config=config)


def append(cache: Any, config: Any, tokens: int, seed: int, batch: int = 1) -> None:
    """Append seeded values to every tensor of a cache's first layer."""
    generator = torch.Generator().manual_seed(seed)

    def values(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(config.dtype)

    latents = values(batch, 1, tokens, config.kv_lora_rank)
    cache.update(latents, values(batch, 1, tokens, config.qk_rope_head_dim), 0)
    cache.update_indexer(values(batch, tokens, config.index_head_dim), 0)


def prompt(batch: int, tokens: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(PAD + 1, VOCABULARY, (batch, tokens), generator=generator)


def padding(tokens: int, *spans: tuple[int, int]) -> Tensor:
    """Make a mask [B, tokens] whose row has ones from ``begin`` to ``end - 1``."""
    position = torch.arange(tokens)
    return torch.stack([(position >= begin) & (position < end) for begin, end in spans]).long()


def real_logits(model: Any, mask: Tensor, **arguments: Any) -> Tensor:
    """Return the logits [tokens, V] of a prompt's tokens that are not padding."""
    logits: Tensor = model(prompt(*mask.shape), attention_mask=mask, **arguments).logits
    return logits[mask.bool()]


def under(implementation: str, model: Any, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns while the model has another implementation."""
    before = model.config._attn_implementation
    model.set_attn_implementation(implementation)
    try:
        return call()
    finally:
        model.set_attn_implementation(before)


def assert_close(got: Tensor, wanted: Tensor, relative: float = 1e-4) -> None:
    """Compare by the scale of all that is wanted, not element by element."""
    assert got.shape == wanted.shape
    assert got.isfinite().all()
    error = (got - wanted).abs().max() / wanted.abs().max()
    assert error <= relative, f"{error:.2e} of the scale apart"


def assert_close_to_eager(model: Any, call: Callable[[], Tensor]) -> None:
    assert_close(call(), under("eager", model, call))


def assert_tokens_of_eager(model: Any, call: Callable[[], Tensor]) -> None:
    assert torch.equal(call(), under("eager", model, call))


class OpCalls(TorchDispatchMode):
    """Records the ops of custom_pypto that run, by name, with their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "custom_pypto":
            self.calls.append((func._schema.name.partition("::")[2], args))
        return func(*args, **kwargs or {})
