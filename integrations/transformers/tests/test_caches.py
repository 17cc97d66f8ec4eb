"""GrowingCache holds what DynamicCache holds, whatever is done to either."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import GrowingCache
from tiny_models import assert_close, prompt, under
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig

pytestmark = pytest.mark.usefixtures("no_grad")

CONFIG = tiny_models.make_config("deepseek_v32")
BATCH = 3


def append(cache: Any, tokens: int, seed: int, batch: int = BATCH) -> None:
    """Append seeded values to every tensor of the first layer."""
    generator = torch.Generator().manual_seed(seed)

    def values(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    cache.update(values(batch, 1, tokens, 48), values(batch, 1, tokens, 16), 0)
    cache.update_indexer(values(batch, tokens, 32), 0)


def tensors(cache: Any) -> list[Tensor]:
    layer = cache.layers[0]
    return [layer.keys, layer.values, layer.indexer_keys]


def assert_equal(ours: Any, theirs: Any) -> None:
    assert ours.get_seq_length() == theirs.get_seq_length()
    for mine, other in zip(tensors(ours), tensors(theirs), strict=True):
        assert torch.equal(mine, other)


def reorder(cache: Any) -> None:
    cache.reorder_cache(torch.tensor([2, 0, 2]))


def crop(cache: Any) -> None:
    cache.crop(-5)


def crop_and_refill(cache: Any) -> None:
    cache.crop(-5)
    append(cache, 2, seed=7)


def repeat(cache: Any) -> None:
    cache.batch_select_indices(torch.tensor([1]))
    cache.batch_repeat_interleave(BATCH)


def offload(cache: Any) -> None:
    cache.layers[0].offload()
    cache.layers[0].prefetch()


def start_again(cache: Any) -> None:
    cache.reset()
    append(cache, 4, seed=8)


def clone(cache: Any) -> None:
    """As a copy to another device and back is."""
    layer = cache.layers[0]
    layer.keys, layer.values = layer.keys.clone(), layer.values.clone()
    layer.indexer_keys = layer.indexer_keys.clone()


CHANGES = [reorder, crop, crop_and_refill, repeat, offload, start_again, clone]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_steps(change: Callable[[Any], None]) -> None:
    ours, theirs = GrowingCache(CONFIG), DynamicCache(config=CONFIG)
    for cache in (ours, theirs):
        append(cache, 11, seed=0)
        append(cache, 1, seed=1)
        change(cache)
        append(cache, 1, seed=2)
        append(cache, 3, seed=3)
    assert_equal(ours, theirs)


@pytest.mark.parametrize("change", [offload, clone])
def test_a_change_between_steps_of_one_sequence(change: Callable[[Any], None]) -> None:
    """The stride of a dimension of size 1 says nothing of the memory behind the last token."""
    ours, theirs = GrowingCache(CONFIG), DynamicCache(config=CONFIG)
    for cache in (ours, theirs):
        append(cache, 11, seed=0, batch=1)
        change(cache)
        append(cache, 1, seed=2, batch=1)
    assert_equal(ours, theirs)


def test_growth_keeps_what_is_held() -> None:
    ours, theirs = GrowingCache(CONFIG), DynamicCache(config=CONFIG)
    for cache in (ours, theirs):
        for seed, tokens in enumerate((1, 1000, 1, 1000, 1, 2500)):
            append(cache, tokens, seed)
    assert_equal(ours, theirs)


def test_a_step_writes_behind_what_is_held() -> None:
    cache = GrowingCache(CONFIG)
    append(cache, 1000, seed=0)
    before = [tensor.data_ptr() for tensor in tensors(cache)]
    for seed in range(1, 30):
        append(cache, 1, seed)
    assert [tensor.data_ptr() for tensor in tensors(cache)] == before


def test_another_batch_is_refused_as_by_dynamic_cache() -> None:
    cache = GrowingCache(CONFIG)
    append(cache, 11, seed=0, batch=1)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        append(cache, 1, seed=1, batch=3)


def test_another_dtype_is_promoted_as_by_dynamic_cache() -> None:
    ours, theirs = GrowingCache(CONFIG), DynamicCache(config=CONFIG)
    for cache in (ours, theirs):
        append(cache, 11, seed=0)
        half = torch.ones(BATCH, 1, 2, 48).bfloat16()
        cache.update(half, half[..., :16], 0)
    assert ours.layers[0].keys.dtype == theirs.layers[0].keys.dtype
    assert torch.equal(ours.layers[0].keys, theirs.layers[0].keys)


def test_a_padded_step_copies_no_keys() -> None:
    """Rows with room behind them are handed to the indexer where they lie."""
    model = tiny_models.make_model("deepseek_v32", num_hidden_layers=1)
    ids, mask = prompt(2, 50), tiny_models.padding(50, (0, 50), (17, 50))
    cache, seen = GrowingCache(model.config), []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.ops.custom_pypto.npu_lightning_indexer_pto.default:
                seen.append(args[1].data_ptr())
            return func(*args, **(kwargs or {}))

    model(ids[:, :49], attention_mask=mask[:, :49], past_key_values=cache)
    with Sizes():
        model(ids[:, 49:], attention_mask=mask, past_key_values=cache)
    assert seen == [cache.layers[0].indexer_keys.data_ptr()]


def test_a_deep_copy_goes_its_own_way() -> None:
    """As one prompt's cache is taken for several continuations."""
    cache = GrowingCache(CONFIG)
    append(cache, 11, seed=0)
    other = copy.deepcopy(cache)
    append(cache, 1, seed=1)
    append(other, 1, seed=2)
    again = DynamicCache(config=CONFIG)
    append(again, 11, seed=0)
    append(again, 1, seed=1)
    assert_equal(cache, again)


def test_it_can_be_saved() -> None:
    cache, file = GrowingCache(CONFIG), io.BytesIO()
    append(cache, 11, seed=0)
    torch.save(cache, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for one in (cache, loaded):
        append(one, 1, seed=1)
    assert_equal(loaded, cache)


def test_what_inference_mode_made_is_not_written_outside_of_it() -> None:
    cache = GrowingCache(CONFIG)
    with torch.inference_mode():
        append(cache, 11, seed=0)
    append(cache, 1, seed=1)
    assert cache.get_seq_length() == 12


def test_gradients_flow_through_it() -> None:
    cache, key = GrowingCache(CONFIG), torch.ones(1, 1, 2, 48, requires_grad=True)
    with torch.enable_grad():
        cache.update(key, torch.ones(1, 1, 2, 16), 0)
        keys, _ = cache.update(2 * key, torch.ones(1, 1, 2, 16), 0)
        keys.sum().backward()
    assert key.grad is not None
    assert torch.equal(key.grad, torch.full_like(key, 3.0))


def test_a_model_without_an_indexer_takes_it() -> None:
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        pad_token_id=2,
    )
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()

    def run(cache: Any) -> Tensor:
        out = model.generate(prompt(1, 9), max_new_tokens=5, past_key_values=cache)
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(run(GrowingCache(config)), run(None))


@pytest.mark.parametrize("kind", [GrowingCache, lambda config: DynamicCache(config=config)])
def test_a_layer_may_be_offloaded_between_steps(kind: Callable[[Any], Any]) -> None:
    """transformers' own offloaded cache does this; it needs an accelerator's streams."""
    model = tiny_models.make_model("deepseek_v32")
    ids = prompt(1, 50)

    def run(cache: Any) -> Tensor:
        model(ids[:, :49], past_key_values=cache)
        for layer in cache.layers:
            layer.offload()
            layer.prefetch()
        out = model(ids[:, 49:], past_key_values=cache).logits
        assert isinstance(out, Tensor)
        return out

    wanted = under("eager", model, lambda: run(DynamicCache(config=model.config)))
    assert_close(run(kind(model.config)), wanted)
