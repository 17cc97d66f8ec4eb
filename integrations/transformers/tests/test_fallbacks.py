"""Where the ops do not apply, transformers' own attention runs: one warning, eager's results."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import indexer
from tiny_models import (
    EVERY_FAMILY,
    assert_close,
    assert_close_to_eager,
    padding,
    prompt,
    real_logits,
    under,
)
from torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("no_grad")

TOKENS = 40
LEFT = padding(TOKENS, (0, TOKENS), (11, TOKENS))
HOLES = padding(TOKENS, (0, TOKENS), (3, TOKENS))
HOLES[1, 9:20] = 0


def falls_back(run: Callable[[], Any], why: str) -> Any:
    """Return what ``run`` returns; assert that it warns once, says why, and never warns again."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
        run()
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 1, texts
    assert "attn_implementation='custom_pypto' runs transformers' own attention" in texts[0]
    assert why in texts[0]
    return found


def assert_falls_back_to_sdpa(model: Any, run: Callable[[], Tensor], why: str) -> None:
    """The bits are the same."""
    assert torch.equal(falls_back(run, why), under("sdpa", model, run))


@EVERY_FAMILY
def test_frozen_weights_want_no_gradients(model: Any) -> None:
    """Only the head of such a model is trained, and nothing falls back."""
    model.requires_grad_(False)
    try:
        with torch.enable_grad():
            assert_close_to_eager(model, lambda: model(prompt(1, TOKENS)).logits)
    finally:
        model.requires_grad_(True)


def test_packed_sequences(model: Any) -> None:
    """Two texts in one row: the position ids start again."""
    ids, places = prompt(1, TOKENS), torch.cat([torch.arange(23), torch.arange(17)])[None]

    def run() -> Tensor:
        return model(ids, position_ids=places, use_cache=False).logits

    ours = falls_back(run, "packed sequences")
    assert_close(ours, under("eager", model, run))
    assert_close(ours[:, 23:], model(ids[:, 23:], use_cache=False).logits)


def banded(dtype: torch.dtype) -> Tensor:
    """Each query sees the last 9 keys and the first: no range can express this mask."""
    row, column = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
    seen = (column <= row) & ((column > row - 9) | (column == 0))
    if dtype == torch.bool:
        return seen[None, None]
    return torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)[None, None]


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32], ids=str)
def test_a_custom_mask(model: Any, dtype: torch.dtype) -> None:
    def run(dtype: torch.dtype) -> Tensor:
        return model(prompt(1, TOKENS), attention_mask=banded(dtype)).logits

    ours = falls_back(lambda: run(dtype), "a mask of your own")
    assert_close(ours, under("eager", model, lambda: run(torch.float32)))


@EVERY_FAMILY
def test_zeros_between_ones_while_it_generates(model: Any) -> None:
    def run() -> Any:
        return model.generate(prompt(2, TOKENS), attention_mask=HOLES, max_new_tokens=5)

    assert torch.equal(falls_back(run, "zeros between ones"), under("eager", model, run))


def test_the_weights_of_the_softmax(model: Any) -> None:
    def run() -> Any:
        return model(prompt(2, TOKENS), attention_mask=LEFT, output_attentions=True)

    real = LEFT.bool()
    ours, eager = falls_back(run, "output_attentions"), under("eager", model, run)
    assert_close(ours.logits[real], eager.logits[real])
    assert len(ours.attentions) == model.config.num_hidden_layers
    for mine, theirs in zip(ours.attentions, eager.attentions, strict=True):
        # Rows of padding queries mean nothing.
        assert_close(mine.transpose(1, 2)[real], theirs.transpose(1, 2)[real])


def test_float64() -> None:
    model = tiny_models.make_model("deepseek_v32", torch.float64, **tiny_models.DENSE)
    assert_falls_back_to_sdpa(
        model, lambda: model(prompt(1, TOKENS)).logits, "the model is torch.float64"
    )


def test_autocast(model: Any) -> None:
    """All keys are selected, so that bfloat16 moves no edge of the selection."""

    def run() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(prompt(1, tiny_models.TOPK)).logits.float()

    assert_falls_back_to_sdpa(model, run, "under autocast")


def test_dropout_while_training() -> None:
    model = tiny_models.make_model("deepseek_v32", attention_dropout=0.3).train()

    def run() -> Any:
        torch.manual_seed(3)
        return model(prompt(1, TOKENS)).logits

    assert_falls_back_to_sdpa(model, run, "attention_dropout is 0.3")
    assert_close_to_eager(model.eval(), lambda: model(prompt(1, TOKENS)).logits)


class Scaled(nn.Linear):
    """A Linear that multiplies by more than its weight, as a quantised one."""

    def forward(self, rows: Tensor) -> Tensor:
        return 0.5 * super().forward(rows)


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


CHANGES: dict[str, Callable[[Any], object]] = {
    "class": lambda it: setattr(it, "__class__", Scaled),
    "bias": lambda it: setattr(it, "bias", nn.Parameter(torch.linspace(-1, 1, it.out_features))),
    "forward": lambda it: setattr(it, "forward", lambda x, call=it.forward: 2 * call(x)),
    "parametrization": lambda it: nn.utils.parametrize.register_parametrization(
        it, "weight", Doubled()
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_projection_that_is_more_than_its_weight(family: str, change: str) -> None:
    model = tiny_models.make_model(family)
    ids = prompt(1, TOKENS)
    before = model(ids).logits
    for layer in model.model.layers:
        CHANGES[change](layer.self_attn.kv_b_proj)
    ours = falls_back(lambda: model(ids).logits, "kv_b_proj")
    assert_close(ours, under("eager", model, lambda: model(ids).logits))
    assert not torch.allclose(ours, before, atol=1e-2)


# All that torch has, for a module and for all modules.
HOOKS = [
    name
    for owner in (nn.Module, nn.modules.module)
    for name in sorted(vars(owner))
    if name.startswith("register_") and name.endswith("_hook")
]
assert len(HOOKS) >= 17


@pytest.mark.parametrize("register", HOOKS)
def test_a_hook_on_the_projection_runs(monkeypatch: pytest.MonkeyPatch, register: str) -> None:
    """A hook of its forward or backward pass needs its forward; others, as of its state, do not."""
    # torch keeps this when the hook is removed, and then takes no hook of the other kind.
    monkeypatch.setattr(nn.modules.module, "_global_is_full_backward_hook", None)
    model, calls = tiny_models.make_model("deepseek_v32", num_hidden_layers=1), []
    projection = model.model.layers[0].self_attn.kv_b_proj
    owner = projection if hasattr(nn.Module, register) else nn.modules.module

    def note(module: Any, *_: Any) -> None:
        calls.append(module)

    handle = getattr(owner, register)(note)
    try:
        with warnings.catch_warnings(record=True) as caught, torch.enable_grad():
            warnings.simplefilter("always")
            ids = prompt(1, TOKENS)
            model(ids, labels=ids, use_cache=False).loss.backward()
    finally:
        handle.remove()
    acts = "forward" in register or "backward" in register
    assert (projection in calls) == acts
    assert any("with hooks" in str(each.message) for each in caught) == acts


def test_every_reason_is_reported(model: Any) -> None:
    """One warning a reason, not one a process."""
    mask = banded(torch.bool)
    falls_back(lambda: model(prompt(1, TOKENS), attention_mask=mask), "a mask of your own")
    falls_back(lambda: model(prompt(1, TOKENS), output_attentions=True), "output_attentions")


def test_an_indexer_that_falls_back_alone_selects_no_later_key(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens on an NPU whose kernels take the attention's sizes but not the indexer's."""
    monkeypatch.setattr(indexer, "refusal_of", lambda *_: "the indexer's size")
    ours = falls_back(lambda: real_logits(model, LEFT), "the indexer's size")
    assert_close(ours, under("eager", model, lambda: real_logits(model, LEFT)))
