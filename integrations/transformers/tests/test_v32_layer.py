"""A layer with DeepSeek-V3.2's latents, index keys and selection, on a cache with more keys."""

from collections import Counter
from typing import Any

import pytest
import torch
from custom_pypto_transformers import GrowingCache
from tiny_models import CACHE, append, prompt
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

pytestmark = pytest.mark.usefixtures("no_grad")


def allocations(model: Any, cache: Any) -> Counter[int]:
    """Count the allocations of a decode step by their bytes."""
    model(prompt(1, 1), **{CACHE: cache})
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        model(prompt(1, 1), **{CACHE: cache})
    memory = [each for each in run.profiler.kineto_results.events() if each.name() == "[memory]"]
    on_cpu = [each.nbytes() for each in memory if each.device_type() == DeviceType.CPU]
    return Counter(bytes_ for bytes_ in on_cpu if bytes_ > 0)


SHORT, LONG = 4096, 16384
"""Contexts of two lengths, both with more keys than are selected."""


def extra_allocations(cache: type) -> list[int]:
    """Return the bytes of each allocation that a decode step makes only for the long context.

    The others are torch's, and depend on the processor: torch may reorder weights. The model has
    latents and index keys of the real sizes, and little else.
    """
    sizes = {"vocab_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "hidden_size": 64}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 32}
    config = AutoConfig.for_model("deepseek_v32", mlp_layer_types=["dense"], **sizes)
    options = {"dtype": torch.bfloat16, "attn_implementation": "custom_pypto"}
    model = AutoModelForCausalLM.from_config(config, **options).eval()
    found = []
    for tokens in (SHORT, LONG):
        filled = cache(config=model.config)
        append(filled, model.config, tokens, seed=1)
        found.append(allocations(model, filled))
    return sorted((found[1] - found[0]).elements())


def test_a_decode_step_allocates_nothing_of_the_contexts_length() -> None:
    # One value a key, in the smallest of the dtypes, would be this.
    assert max(extra_allocations(GrowingCache), default=0) < LONG * 2


def test_a_dynamic_cache_allocates_copies_of_its_keys() -> None:
    assert extra_allocations(DynamicCache) == [(LONG + 2) * width * 2 for width in (64, 128, 512)]
