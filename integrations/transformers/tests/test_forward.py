"""Logits of a forward pass agree with eager's, for every mask, dtype and shape of the cache."""

import functools
from contextlib import nullcontext
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import attention
from custom_pypto_transformers.key_ranges import KeyRanges
from tiny_models import (
    CACHE,
    EVERY_FAMILY,
    assert_close,
    assert_close_to_eager,
    assert_tokens_of_eager,
    every_family_and_cache,
    make_cache,
    padding,
    prompt,
    real_logits,
    under,
)
from torch import Tensor

pytestmark = pytest.mark.usefixtures("no_grad")

TOKENS = 60
PADDINGS = {
    "none": padding(TOKENS, (0, TOKENS), (0, TOKENS)),
    "left": padding(TOKENS, (0, TOKENS), (23, TOKENS)),
    "right": padding(TOKENS, (0, TOKENS), (0, 31)),
    # The second row has no token among the first 40.
    "both": padding(TOKENS, (7, TOKENS), (44, 55)),
    "all but one key": padding(TOKENS, (0, TOKENS), (TOKENS - 1, TOKENS)),
}
MASKS = pytest.mark.parametrize("mask", PADDINGS.values(), ids=PADDINGS)


@EVERY_FAMILY
@MASKS
def test_padding(model: Any, mask: Tensor) -> None:
    wanted = under("eager", model, lambda: real_logits(model, mask))
    for use_cache in (True, False):
        assert_close(real_logits(model, mask, use_cache=use_cache), wanted)


@EVERY_FAMILY
def test_a_row_that_is_all_padding_stays_finite_and_disturbs_none(model: Any) -> None:
    ids = prompt(2, TOKENS)
    logits = model(ids, attention_mask=padding(TOKENS, (0, TOKENS), (0, 0))).logits
    assert logits.isfinite().all()
    assert_close(logits[:1], model(ids[:1]).logits)


@EVERY_FAMILY
def test_the_default_device_is_not_followed(model: Any) -> None:
    ids = prompt(2, TOKENS)
    wanted = model(ids, use_cache=False).logits
    with torch.device("meta"):  # Sliding caches of transformers follow it.
        assert model(ids, use_cache=False).logits.equal(wanted)


@functools.cache
def pieces(model: Any, name: str, cache: str, implementation: str) -> Tensor:
    """The logits of 40 tokens, then 20. Positions count from the first real token."""
    mask = PADDINGS[name]
    ids, places = prompt(2, TOKENS), (mask.cumsum(-1) - 1).clamp(min=0)

    def run() -> Tensor:
        logits, kept = [], {CACHE: make_cache(cache, model.config)}
        for part in (slice(0, 40), slice(40, TOKENS)):
            given = {"attention_mask": mask[:, : part.stop], "position_ids": places[:, part]}
            logits.append(model(ids[:, part], **given, **kept).logits)
        return torch.cat(logits, 1)[mask.bool()]

    return under(implementation, model, run)


@pytest.mark.parametrize("name", ["none", "both"])
@every_family_and_cache("dynamic", "growing", "static")
def test_a_second_piece_of_several_tokens(model: Any, name: str, cache: str) -> None:
    # Later tokens might see the rows that this model makes of the padding at the right.
    refused = name == "both" and model.config.model_type == "deepseek_v4"
    with pytest.warns(UserWarning, match="do not go on from") if refused else nullcontext():
        found = pieces(model, name, cache, "custom_pypto")
    assert_close(found, pieces(model, name, "dynamic", "eager"))


def test_more_tokens_than_attend_at_once(model: Any) -> None:
    tokens = attention._TOKENS_AT_ONCE + 44
    mask = padding(tokens, (0, tokens), (100, tokens - 10))
    assert_close_to_eager(model, lambda: real_logits(model, mask))


@pytest.mark.parametrize(
    ("dtype", "relative"), [(torch.bfloat16, 4e-2), (torch.float16, 5e-3)], ids=str
)
@pytest.mark.parametrize("family", tiny_models.FAMILIES + tiny_models.WITH_ROWS)
def test_half_precision(family: str, dtype: torch.dtype, relative: float) -> None:
    """All keys are selected, so that rounding does not change the selection."""
    model = tiny_models.make_model(family, dtype, index_topk=TOKENS, **tiny_models.DENSE)

    def run() -> Tensor:
        logits = real_logits(model, PADDINGS["left"])
        assert logits.dtype == dtype
        return logits.float()

    ours, eager = run(), under("eager", model, run)
    assert (ours - eager).norm() / eager.norm() < relative


def test_yarn_scales_the_scores() -> None:
    model = tiny_models.make_model("deepseek_v32", rope_parameters=tiny_models.YARN)
    assert_close_to_eager(model, lambda: model(prompt(1, TOKENS)).logits)


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "not cached"])
def test_glm_layers_share_a_selection(cache: bool) -> None:
    kinds = ["full", "shared", "shared", "full", "shared"]
    model = tiny_models.make_model("glm_moe_dsa", num_hidden_layers=5, indexer_types=kinds)
    assert [layer.self_attn.indexer is None for layer in model.model.layers] == [
        kind == "shared" for kind in kinds
    ]
    options = {"attention_mask": PADDINGS["left"], "max_new_tokens": 6, "use_cache": cache}
    assert_tokens_of_eager(model, lambda: model.generate(prompt(2, TOKENS), **options))


def test_key_ranges_move_to_a_device() -> None:
    """As accelerate moves the arguments of a layer of a model on several devices."""
    one = torch.tensor([3])
    moved = KeyRanges.padded(4, 9, 5, one - 1, one + 6).to("meta")
    assert moved.offset == 5
    assert moved.segments is not None
    assert all(tensor.device.type == "meta" for tensor in (moved.first, *moved.segments))
