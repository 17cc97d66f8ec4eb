"""Tokens that `generate` makes equal those of eager, with each of its options."""

from __future__ import annotations

from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import GrowingCache
from tiny_models import padding, prompt, under
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

TOKENS = 60
FULL = padding(TOKENS, (0, TOKENS), (0, TOKENS))
LEFT = padding(TOKENS, (0, TOKENS), (23, TOKENS))
MASKS = pytest.mark.parametrize("mask", [FULL, LEFT], ids=["full", "left-padded"])


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_models.make_model(request.param)


def generate(model: Any, mask: Tensor, **options: Any) -> Tensor:
    """Eight new tokens after 60."""
    options = {"max_new_tokens": 8, "do_sample": False, "disable_compile": True, **options}
    found = model.generate(prompt(len(mask), TOKENS), attention_mask=mask, **options)
    assert isinstance(found, Tensor)
    return found


def assert_tokens_equal_those_of_eager(
    model: Any, mask: Tensor, mode: dict[str, Any], **ours: Any
) -> None:
    """With options of both, and further ones that eager does without."""
    wanted = under("eager", model, lambda: generate(model, mask, **mode))
    assert torch.equal(generate(model, mask, **mode, **ours), wanted)


@MASKS
def test_greedy(model: Any, mask: Tensor) -> None:
    assert_tokens_equal_those_of_eager(model, mask, {})


@MASKS
def test_sampling(model: Any, mask: Tensor) -> None:
    def sample() -> Tensor:
        torch.manual_seed(5)
        return generate(model, mask, do_sample=True, temperature=3.0, top_k=20)

    wanted = under("eager", model, sample)
    assert torch.equal(sample(), wanted)
    assert not torch.equal(wanted, generate(model, mask))


@MASKS
@pytest.mark.parametrize("grows", [False, True], ids=["concatenated", "growing"])
def test_beams(model: Any, mask: Tensor, grows: bool) -> None:
    ours = {"past_key_values": GrowingCache(model.config)} if grows else {}
    assert_tokens_equal_those_of_eager(model, mask, {"num_beams": 3}, **ours)


def test_several_samples_of_a_prompt(model: Any) -> None:
    assert_tokens_equal_those_of_eager(model, LEFT, {"num_beams": 4, "num_return_sequences": 2})


@pytest.mark.parametrize("grows", [False, True], ids=["concatenated", "growing"])
def test_assisted_generation(model: Any, grows: bool) -> None:
    """The assistant guesses wrong now and then: what the cache holds is cropped."""
    assistant = tiny_models.make_model(model.config.model_type, num_hidden_layers=1)
    ours = {"past_key_values": GrowingCache(model.config)} if grows else {}
    assert_tokens_equal_those_of_eager(model, FULL[:1], {}, assistant_model=assistant, **ours)


def test_prompt_lookup(model: Any) -> None:
    assert_tokens_equal_those_of_eager(model, FULL[:1], {}, prompt_lookup_num_tokens=3)


@MASKS
def test_static_cache(model: Any, mask: Tensor) -> None:
    assert_tokens_equal_those_of_eager(model, mask, {}, cache_implementation="static")


@MASKS
def test_growing_cache(model: Any, mask: Tensor) -> None:
    cache = GrowingCache(model.config)
    assert_tokens_equal_those_of_eager(model, mask, {}, past_key_values=cache)


@MASKS
def test_no_cache(model: Any, mask: Tensor) -> None:
    assert_tokens_equal_those_of_eager(model, mask, {}, use_cache=False)


@pytest.mark.parametrize("cache", ["dynamic", "static", "growing"])
@MASKS
def test_chunked_prefill(model: Any, mask: Tensor, cache: str) -> None:
    ours: dict[str, Any] = {"prefill_chunk_size": 25}
    if cache == "static":
        ours["cache_implementation"] = "static"
    elif cache == "growing":
        ours["past_key_values"] = GrowingCache(model.config)
    assert_tokens_equal_those_of_eager(model, mask, {}, **ours)


def test_a_context_shorter_than_the_selection(model: Any) -> None:
    """It passes the 16 selected keys while it is generated."""

    def run() -> Tensor:
        mask = padding(12, (0, 12), (5, 12))
        out = model.generate(prompt(2, 12), attention_mask=mask, max_new_tokens=8, do_sample=False)
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(run(), under("eager", model, run))


def test_a_prompt_of_one_token(model: Any) -> None:
    def run() -> Tensor:
        out = model.generate(prompt(1, 1), max_new_tokens=4, do_sample=False)
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(run(), under("eager", model, run))


def test_a_conversation_that_goes_on_with_its_cache(model: Any) -> None:
    def talk(cache: Any) -> Tensor:
        first = model.generate(
            prompt(1, 40), max_new_tokens=4, do_sample=False, past_key_values=cache
        )
        second = torch.cat([first, prompt(1, 20, seed=1)], -1)
        out = model.generate(second, max_new_tokens=4, do_sample=False, past_key_values=cache)
        assert isinstance(out, Tensor)
        return out

    wanted = under("eager", model, lambda: talk(None))
    assert torch.equal(talk(GrowingCache(model.config)), wanted)


class Calls(TorchDispatchMode):
    """Counts the ops of the namespace custom_pypto that run."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "custom_pypto":
            name = func._schema.name.partition("::")[2]
            self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **kwargs or {})


@MASKS
def test_every_layer_and_step_runs_on_the_ops(model: Any, mask: Tensor) -> None:
    with Calls() as calls:
        generate(model, mask, max_new_tokens=3)
    runs = 3 * model.config.num_hidden_layers
    assert calls.counts == {"npu_lightning_indexer_pto": runs, "npu_sparse_flash_attention": runs}
