"""Where the ops do not apply, transformers' own attention runs: one warning, eager's results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import indexer
from tiny_models import assert_close, padding, prompt, under
from torch import Tensor, nn

TOKENS = 40


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_models.make_model(request.param)


def falls_back(run: Callable[[], Any], why: str) -> Any:
    """What ``run`` returns; asserts that it warns once, and why, and never again."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
        run()
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 1, texts
    assert "attn_implementation='custom_pypto' runs transformers' own attention" in texts[0]
    assert why in texts[0]
    return found


def test_frozen_weights_want_no_gradients(model: Any) -> None:
    """As in a model whose head alone is trained: here nothing falls back."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    try:
        ours = model(prompt(1, TOKENS)).logits
        assert_close(ours, under("eager", model, lambda: model(prompt(1, TOKENS)).logits))
    finally:
        for parameter in model.parameters():
            parameter.requires_grad_(True)


@pytest.mark.usefixtures("no_grad")
def test_packed_sequences(model: Any) -> None:
    """Two texts in one row, as position ids that start again say."""
    places = torch.cat([torch.arange(23), torch.arange(17)])[None]

    def run() -> Tensor:
        out = model(prompt(1, TOKENS), position_ids=places, use_cache=False).logits
        assert isinstance(out, Tensor)
        return out

    ours = falls_back(run, "packed sequences")
    assert_close(ours, under("eager", model, run))
    alone = model(prompt(1, TOKENS)[:, 23:], use_cache=False).logits
    assert_close(ours[:, 23:], alone)


def banded(dtype: torch.dtype) -> Tensor:
    """Each query sees the last 9 keys and the first: a mask that no range says."""
    row, column = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
    seen = (column <= row) & ((column > row - 9) | (column == 0))
    if dtype == torch.bool:
        return seen[None, None]
    return torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)[None, None]


@pytest.mark.usefixtures("no_grad")
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32], ids=str)
def test_a_mask_of_ones_own(model: Any, dtype: torch.dtype) -> None:
    def run(mask: Tensor) -> Tensor:
        out = model(prompt(1, TOKENS), attention_mask=mask).logits
        assert isinstance(out, Tensor)
        return out

    ours = falls_back(lambda: run(banded(dtype)), "a mask of your own")
    assert_close(ours, under("eager", model, lambda: run(banded(torch.float32))))


@pytest.mark.usefixtures("no_grad")
def test_zeros_between_ones(model: Any) -> None:
    mask = padding(TOKENS, (0, TOKENS), (3, TOKENS))
    mask[1, 9:20] = 0

    def run() -> Tensor:
        out = model(prompt(2, TOKENS), attention_mask=mask).logits[mask.bool()]
        assert isinstance(out, Tensor)
        return out

    assert_close(falls_back(run, "zeros between ones"), under("eager", model, run))


def test_zeros_between_ones_while_it_generates(model: Any) -> None:
    mask = padding(TOKENS, (0, TOKENS), (3, TOKENS))
    mask[1, 9:20] = 0

    def run() -> Tensor:
        out = model.generate(prompt(2, TOKENS), attention_mask=mask, max_new_tokens=5)
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(falls_back(run, "zeros between ones"), under("eager", model, run))


@pytest.mark.usefixtures("no_grad")
def test_the_weights_of_the_softmax(model: Any) -> None:
    mask = padding(TOKENS, (0, TOKENS), (11, TOKENS))

    def run() -> Any:
        return model(prompt(2, TOKENS), attention_mask=mask, output_attentions=True)

    ours, eager = falls_back(run, "output_attentions"), under("eager", model, run)
    assert_close(ours.logits[mask.bool()], eager.logits[mask.bool()])
    assert len(ours.attentions) == model.config.num_hidden_layers
    for mine, theirs in zip(ours.attentions, eager.attentions, strict=True):
        # Rows of padding queries mean nothing.
        assert_close(mine.transpose(1, 2)[mask.bool()], theirs.transpose(1, 2)[mask.bool()])


@pytest.mark.usefixtures("no_grad")
def test_float64() -> None:
    model = tiny_models.make_model("deepseek_v32", torch.float64, **tiny_models.DENSE)
    ids = prompt(1, TOKENS)
    ours = falls_back(lambda: model(ids).logits, "the model is torch.float64")
    assert torch.equal(ours, under("sdpa", model, lambda: model(ids).logits))


@pytest.mark.usefixtures("no_grad")
def test_autocast(model: Any) -> None:
    """All keys are selected, so that bfloat16 moves no edge of the selection."""
    ids = prompt(1, tiny_models.TOPK)

    def run() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out = model(ids).logits.float()
        assert isinstance(out, Tensor)
        return out

    ours = falls_back(run, "under autocast")
    assert torch.equal(ours, under("sdpa", model, run))


class Scaled(nn.Linear):
    """A Linear whose weight is not what it multiplies by, as a quantised one."""

    def forward(self, rows: Tensor) -> Tensor:
        return 0.5 * super().forward(rows)


def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return 0.5 * output


def scale_by_class(projection: nn.Module) -> None:
    projection.__class__ = Scaled


def scale_by_hook(projection: nn.Module) -> None:
    projection.register_forward_hook(hook)


def scale_by_bias(projection: Any) -> None:
    projection.bias = nn.Parameter(torch.linspace(-1, 1, projection.out_features))


@pytest.mark.usefixtures("no_grad")
@pytest.mark.parametrize("change", [scale_by_class, scale_by_hook, scale_by_bias])
def test_a_projection_that_is_more_than_its_weight(change: Callable[[nn.Module], None]) -> None:
    model = tiny_models.make_model("deepseek_v32")
    ids = prompt(1, TOKENS)
    before = model(ids).logits
    for layer in model.model.layers:
        change(layer.self_attn.kv_b_proj)
    ours = falls_back(lambda: model(ids).logits, "kv_b_proj")
    assert_close(ours, under("eager", model, lambda: model(ids).logits))
    assert not torch.allclose(ours, before, atol=1e-2)


@pytest.mark.usefixtures("no_grad")
def test_dropout_while_training() -> None:
    model = tiny_models.make_model("deepseek_v32", attention_dropout=0.3).train()
    ids = prompt(1, TOKENS)

    def run() -> Tensor:
        torch.manual_seed(3)
        out = model(ids).logits
        assert isinstance(out, Tensor)
        return out

    assert torch.equal(falls_back(run, "attention_dropout is 0.3"), under("sdpa", model, run))


@pytest.mark.usefixtures("no_grad")
def test_dropout_of_a_model_for_inference_does_nothing() -> None:
    model = tiny_models.make_model("deepseek_v32", attention_dropout=0.3)
    ids = prompt(1, TOKENS)
    assert_close(model(ids).logits, under("eager", model, lambda: model(ids).logits))


@pytest.mark.usefixtures("no_grad")
def test_every_reason_is_reported(model: Any) -> None:
    """One warning a reason, not one a process."""
    mask = banded(torch.bool)
    falls_back(lambda: model(prompt(1, TOKENS), attention_mask=mask), "a mask of your own")
    falls_back(lambda: model(prompt(1, TOKENS), output_attentions=True), "output_attentions")


@pytest.mark.usefixtures("no_grad")
def test_only_the_indexer_falling_back_selects_no_later_key(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an NPU whose kernels take the attention's sizes but not the indexer's."""
    ids, mask = prompt(2, TOKENS), padding(TOKENS, (0, TOKENS), (11, TOKENS))
    monkeypatch.setattr(indexer, "refusal_of_indexer", lambda *_: "the indexer's size")
    found = falls_back(lambda: model(ids, attention_mask=mask).logits, "the indexer's size")
    wanted = under("eager", model, lambda: model(ids, attention_mask=mask).logits)
    assert_close(found[mask.bool()], wanted[mask.bool()])


@pytest.mark.usefixtures("no_grad")
def test_a_replaced_forward_of_kv_b_proj_is_what_runs(model: Any) -> None:
    projections = [layer.self_attn.kv_b_proj for layer in model.model.layers]
    for projection in projections:
        projection.forward = lambda x, call=projection.forward: 2 * call(x)
    try:
        found = falls_back(lambda: model(prompt(1, TOKENS)).logits, "kv_b_proj")
        wanted = under("eager", model, lambda: model(prompt(1, TOKENS)).logits)
    finally:
        for projection in projections:
            del projection.forward
    assert_close(found, wanted)
