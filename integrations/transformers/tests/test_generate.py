"""Tokens that `generate` makes equal those of eager, with each of its options."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
import tiny_models
import torch
from custom_pypto_transformers import GrowingCache
from tiny_models import CACHE, OpCalls, padding, prompt, under
from torch import Tensor

TOKENS = 60
FULL = padding(TOKENS, (0, TOKENS), (0, TOKENS))
LEFT = padding(TOKENS, (0, TOKENS), (23, TOKENS))
MASKS = {"full": FULL, "left-padded": LEFT}
BEAMS: dict[str, Any] = {"num_beams": 3}
SAMPLES: dict[str, Any] = {"num_beams": 4, "num_return_sequences": 2}


class Case(NamedTuple):
    """A call of generate, compared with that of eager and a dynamic cache."""

    mask: Tensor
    cache: str = "dynamic"
    both: dict[str, Any] = {}
    """Options of both calls."""
    ours: dict[str, Any] = {}
    """Options that eager does without."""


CASES: dict[str, Case] = {
    **{
        f"{name}, {cache}, {options}": Case(mask, cache, both, ours)
        for name, mask in MASKS.items()
        for options, both, ours, caches in (
            ("greedy", {}, {}, ("dynamic", "growing", "static", "none")),
            ("beams", BEAMS, {}, ("dynamic", "growing")),
            ("chunks", {}, {"prefill_chunk_size": 25}, ("dynamic", "growing", "static")),
        )
        for cache in caches
    },
    # The first passes the 16 selected keys while it is generated.
    "shorter than the selection": Case(padding(12, (0, 12), (5, 12))),
    "one token": Case(padding(1, (0, 1))),
    "several samples of a prompt": Case(LEFT, both=SAMPLES),
    "prompt lookup": Case(FULL[:1], ours={"prompt_lookup_num_tokens": 3}),
    # The assistant guesses wrong now and then, and the cache is cropped.
    "an assistant": Case(FULL[:1], "dynamic", ours={"assistant_model": {"num_hidden_layers": 1}}),
    "an assistant, growing": Case(
        FULL[:1], "growing", ours={"assistant_model": {"num_hidden_layers": 1}}
    ),
}


def generate(model: Any, mask: Tensor, **options: Any) -> Tensor:
    """Generate eight new tokens after a prompt of the mask's shape."""
    options = {"max_new_tokens": 8, "do_sample": False, "disable_compile": True, **options}
    tokens: Tensor = model.generate(prompt(*mask.shape), attention_mask=mask, **options)
    return tokens


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tokens_are_those_of_eager(model: Any, case: Case) -> None:
    of_cache = {
        "dynamic": {},
        "growing": {CACHE: GrowingCache(model.config)},
        "static": {"cache_implementation": "static"},
        "none": {"use_cache": False},
    }[case.cache]
    ours = dict(case.ours)
    if sizes := ours.get("assistant_model"):
        ours["assistant_model"] = tiny_models.make_model(model.config.model_type, **sizes)
    wanted = under("eager", model, lambda: generate(model, case.mask, **case.both))
    assert torch.equal(generate(model, case.mask, **case.both, **of_cache, **ours), wanted)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_sampling(model: Any, mask: Tensor) -> None:
    def sample() -> Tensor:
        torch.manual_seed(5)
        return generate(model, mask, do_sample=True, temperature=3.0, top_k=20)

    assert torch.equal(sample(), under("eager", model, sample))
    assert not torch.equal(sample(), generate(model, mask))


def test_a_conversation_that_goes_on_with_its_cache(model: Any) -> None:
    def talk(cache: Any) -> Tensor:
        options = {"max_new_tokens": 4, "do_sample": False, CACHE: cache}
        first = model.generate(prompt(1, 40), **options)
        tokens: Tensor = model.generate(torch.cat([first, prompt(1, 20, seed=1)], -1), **options)
        return tokens

    wanted = under("eager", model, lambda: talk(None))
    assert torch.equal(talk(GrowingCache(model.config)), wanted)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_every_layer_and_step_runs_on_the_ops(model: Any, mask: Tensor) -> None:
    with OpCalls() as ops:
        generate(model, mask, max_new_tokens=3)
    runs = 3 * model.config.num_hidden_layers
    assert Counter(name for name, _ in ops.calls) == {
        "npu_lightning_indexer_pto": runs,
        "npu_sparse_flash_attention": runs,
    }
