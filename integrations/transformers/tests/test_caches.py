"""GrowingCache holds the same as DynamicCache, whatever is done to both."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_sparse_attention.ops import NPU_BLOCK_LIMIT
from custom_pypto_transformers import GrowingCache
from tiny_models import CACHE, OpCalls, prompt
from torch import Tensor
from transformers import DynamicCache

pytestmark = pytest.mark.usefixtures("no_grad")

CONFIG = tiny_models.make_config("deepseek_v32", dtype=torch.float32, num_hidden_layers=1)
BATCH = 3


def append(cache: Any, tokens: int, seed: int, batch: int = BATCH) -> None:
    tiny_models.append(cache, CONFIG, tokens, seed, batch)


def tensors(cache: Any) -> list[Tensor]:
    layer = cache.layers[0]
    return [layer.keys, layer.values, layer.indexer_keys]


def crop_and_refill(cache: Any) -> None:
    cache.crop(-5)
    append(cache, 2, seed=7)


def repeat(cache: Any) -> None:
    cache.batch_select_indices(torch.tensor([1]))
    cache.batch_repeat_interleave(BATCH)


def offload(cache: Any) -> None:
    for layer in cache.layers:
        layer.offload()
        layer.prefetch()


def start_again(cache: Any) -> None:
    cache.reset()
    append(cache, 4, seed=8)


def clone(cache: Any) -> None:
    """Do as a copy to another device and back does."""
    layer = cache.layers[0]
    layer.keys, layer.values = layer.keys.clone(), layer.values.clone()
    layer.indexer_keys = layer.indexer_keys.clone()


def append_to_a_deep_copy(cache: Any) -> None:
    """Do as with one prompt's cache for several continuations."""
    other = copy.deepcopy(cache)
    append(cache, 1, seed=9)
    append(other, 1, seed=10)


def pickled(cache: Any) -> Any:
    return pickle.loads(pickle.dumps(cache))


def append_another_dtype(cache: Any) -> None:
    half = torch.ones(BATCH, 1, 2, 48).bfloat16()
    cache.update(half, half[..., :16], 0)


def grow(cache: Any) -> None:
    for seed, tokens in enumerate((1, 1000, 1, 1000, 1, 2500)):
        append(cache, tokens, 20 + seed)


def append_in_inference_mode(cache: Any) -> None:
    """So many that the memory is new; it cannot be written outside of inference mode."""
    with torch.inference_mode():
        append(cache, 2 * NPU_BLOCK_LIMIT, seed=11)


CHANGES: list[Callable[[Any], Any]] = [
    lambda cache: cache.reorder_cache(torch.tensor([2, 0, 2])),
    *(crop_and_refill, repeat, offload, start_again, clone, pickled),
    *(append_to_a_deep_copy, append_another_dtype, append_in_inference_mode, grow),
]


@pytest.mark.parametrize(
    ("change", "batch"),
    # In a batch of 1, the stride does not tell how much memory follows the last token.
    [*((change, BATCH) for change in CHANGES), (offload, 1), (clone, 1)],
)
def test_a_change_between_steps(change: Callable[[Any], Any], batch: int) -> None:
    def use(cache: Any) -> Any:
        append(cache, 11, 0, batch)
        append(cache, 1, 1, batch)
        cache = change(cache) or cache
        append(cache, 1, 2, batch)
        append(cache, 3, 3, batch)
        return cache

    ours, theirs = use(GrowingCache(CONFIG)), use(DynamicCache(config=CONFIG))
    assert ours.get_seq_length() == theirs.get_seq_length()
    for mine, other in zip(tensors(ours), tensors(theirs), strict=True):
        assert mine.dtype == other.dtype
        assert torch.equal(mine, other)


def test_the_memory_is_at_most_half_as_large_again() -> None:
    cache = GrowingCache(CONFIG)
    append(cache, 20_000, seed=0)
    for tensor in tensors(cache):
        tokens = tensor.untyped_storage().nbytes() // (tensor[..., :1, :].numel() * tensor.itemsize)
        assert tokens <= 1.5 * 20_000 + NPU_BLOCK_LIMIT


def test_another_batch_is_refused_as_by_dynamic_cache() -> None:
    cache = GrowingCache(CONFIG)
    append(cache, 11, seed=0, batch=1)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        append(cache, 1, seed=1, batch=3)


def test_a_padded_step_copies_no_keys() -> None:
    """The indexer reads rows in place although they have room behind them."""
    model = tiny_models.make_model("deepseek_v32", num_hidden_layers=1)
    ids, mask = prompt(2, 50), tiny_models.padding(50, (0, 50), (17, 50))
    cache = GrowingCache(model.config)
    model(ids[:, :49], attention_mask=mask[:, :49], **{CACHE: cache})
    with OpCalls() as ops:
        model(ids[:, 49:], attention_mask=mask, **{CACHE: cache})
    keys = [args[1].data_ptr() for name, args in ops.calls if name == "npu_lightning_indexer_pto"]
    assert keys == [cache.layers[0].indexer_keys.data_ptr()]


@pytest.mark.parametrize("has_key", [False, True])
def test_gradients_flow_through_it(has_key: bool) -> None:
    cache, query = GrowingCache(CONFIG), torch.ones(48, requires_grad=True)
    key, value = torch.ones(1, 1, 2, 48, requires_grad=has_key), torch.ones(1, 1, 2, 16)
    with torch.enable_grad():
        products = cache.update(key, value, 0)[0] @ query
        keys, _ = cache.update(2 * key, value, 0)
        (products.sum() + keys.sum()).backward()
    assert torch.equal(query.grad, torch.full_like(query, 2.0))
    assert not has_key or torch.equal(key.grad, torch.full_like(key, 4.0))


def test_a_model_without_an_indexer_takes_it() -> None:
    model = tiny_models.make_llama("sdpa")
    ours, theirs = (
        model.generate(prompt(1, 9), max_new_tokens=5, **{CACHE: cache})
        for cache in (GrowingCache(model.config), None)
    )
    assert torch.equal(ours, theirs)
