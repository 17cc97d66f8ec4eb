"""`generate` makes the tokens that eager makes, with each of its options."""

import copy
import functools
import re
from collections import Counter
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import GrowingCache
from tiny_models import (
    CACHE,
    EVERY_FAMILY,
    OpCalls,
    assert_tokens_of_eager,
    every_family_and_cache,
    padding,
    prompt,
    under,
)
from torch import Tensor

TOKENS = 50
FULL = padding(TOKENS, (0, TOKENS), (0, TOKENS))
LEFT = padding(TOKENS, (0, TOKENS), (23, TOKENS))
MASKS = {
    "full": FULL,
    "left-padded": LEFT,
    # It passes the 16 selected keys while it is generated.
    "shorter than the selection": padding(12, (0, 12), (5, 12)),
    "one token": padding(1, (0, 1)),
}


def generate(model: Any, mask: Tensor, **options: Any) -> Tensor:
    """Generate six new tokens after a prompt of the mask's shape."""
    options = {"max_new_tokens": 6, "do_sample": False, "disable_compile": True, **options}
    return model.generate(prompt(*mask.shape), attention_mask=mask, **options)


@functools.cache
def tokens_of_eager(model: Any, mask: Tensor, **options: Any) -> Tensor:
    return under("eager", model, lambda: generate(model, mask, **options))


def assert_same_tokens(
    model: Any, mask: Tensor, cache: str, /, ours: Any = None, **both: Any
) -> None:
    """Compare with eager and a dynamic cache or none; eager does without the options `ours`."""
    if cache == "none":
        both["use_cache"] = False
    of_cache = {
        "growing": {CACHE: GrowingCache(model.config)},
        "static": {"cache_implementation": "static"},
    }.get(cache, {})
    wanted = tokens_of_eager(model, mask, **both)
    assert torch.equal(generate(model, mask, **both, **of_cache, **(ours or {})), wanted)


@pytest.mark.parametrize("mask", MASKS)
@EVERY_FAMILY
def test_greedy(model: Any, mask: str) -> None:
    assert_same_tokens(model, MASKS[mask], "dynamic")


@every_family_and_cache("growing", "static", "none")
def test_other_caches(model: Any, cache: str) -> None:
    assert_same_tokens(model, LEFT, cache)


@every_family_and_cache("growing")
def test_beams(model: Any, cache: str) -> None:
    assert_same_tokens(model, LEFT, cache, num_beams=2)


@pytest.mark.parametrize("cache", ["dynamic", "growing"])
def test_assisted_generation(model: Any, cache: str) -> None:
    """The assistant guesses wrong now and then, and the cache is cropped."""
    assistant = tiny_models.make_model(model.config.model_type, num_hidden_layers=1)
    assert_same_tokens(model, FULL[:1], cache, ours={"assistant_model": assistant})


@every_family_and_cache("static", "growing")
def test_chunked_prefill(model: Any, cache: str) -> None:
    if (cache, model.config.model_type) == ("static", "dots3_note_text"):
        pytest.skip("transformers makes a static cache of wrong sizes")
    # The second row's first chunk is padding alone.
    assert_same_tokens(model, LEFT, cache, ours={"prefill_chunk_size": 16})


@EVERY_FAMILY
def test_a_conversation_that_goes_on_with_its_cache(model: Any) -> None:
    def talk(cache: Any) -> Tensor:
        options = {"max_new_tokens": 4, "do_sample": False, CACHE: cache}
        first = model.generate(prompt(1, 40), **options)
        return model.generate(torch.cat([first, prompt(1, 20, seed=1)], -1), **options)

    wanted = under("eager", model, lambda: talk(None))
    assert torch.equal(talk(GrowingCache(model.config)), wanted)


# How often a forward pass calls each op.
CALLS = {
    "mistral_large4": {"indexer_pto": 2, "attention": 2, "mla": 1},
    "dots3_note_text": {"indexer_pto": 1, "attention": 2},
    "deepseek_v4": {"indexer_v2": 1, "mla": 3, "pre": 6, "sinkhorn": 6, "post": 6},
    "glm5_next": {"indexer_v2": 1, "mla": 1, "pre": 4, "sinkhorn": 4},
}


@EVERY_FAMILY
def test_every_layer_and_step_runs_on_the_ops(model: Any) -> None:
    wanted = CALLS.get(model.config.model_type, {"indexer_pto": 2, "attention": 2})
    for mask in (FULL, LEFT):
        with OpCalls() as ops:
            generate(model, mask, max_new_tokens=3)
        names = [re.sub("npu_(mhc|lightning|sparse_flash)_", "", name) for name, _ in ops.calls]
        assert Counter(names) == {name: 3 * count for name, count in wanted.items()}


@pytest.mark.skipif("glm5_next" not in tiny_models.WITH_ROWS, reason="a release without GLM-5.3")
@pytest.mark.parametrize("size", [4, 16])
def test_pools_of_other_sizes_and_shared_selections(size: int) -> None:
    """The first has pools of 4 in the released model; 16 is transformers' default."""
    kinds = {"layer_types": ["indexed_attention"] * 3, "mlp_layer_types": ["dense"] * 3}
    model = tiny_models.make_model(
        "glm5_next",
        index_kpool=size,
        index_topk=2 * size,
        num_hidden_layers=3,
        indexer_types=["full", "shared", "full"],
        **kinds,
    )
    options = {"max_new_tokens": 20, "num_beams": 2}
    assert_tokens_of_eager(model, lambda: generate(model, LEFT, **options))


@pytest.mark.skipif("glm5_next" not in tiny_models.WITH_ROWS, reason="a release without GLM-5.3")
def test_complete_pools_are_made_once() -> None:
    """A step reads the states of new pools alone, unless others wrote what is kept."""
    model = tiny_models.make_model("glm5_next")
    cache = tiny_models.make_cache("growing", model.config)
    with torch.no_grad():
        wanted = under("eager", model, lambda: model(prompt(1, TOKENS)).logits[:, -1])
        model(prompt(1, TOKENS)[:, :-1], **{CACHE: cache})
        # A write through `data` is not noticed.
        cache.layers[1].indexer_keys.data[:, : TOKENS - 8, :-1].fill_(torch.nan)
        found = model(prompt(1, TOKENS)[:, -1:], **{CACHE: cache}).logits[:, -1]
        tiny_models.assert_close(found, wanted)

        cache = tiny_models.make_cache("static", model.config)
        model(prompt(1, TOKENS), **{CACHE: cache})
        cache.reset()
        under("eager", model, lambda: model(prompt(1, TOKENS, seed=1), **{CACHE: cache}))
        other = copy.deepcopy(cache)
        wanted = under("eager", model, lambda: model(prompt(1, 1), **{CACHE: other}).logits)
        tiny_models.assert_close(model(prompt(1, 1), **{CACHE: cache}).logits, wanted)
