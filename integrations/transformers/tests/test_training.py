"""Training on the ops: losses and gradients are transformers' own, and indexers learn."""

import warnings
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import attention, indexer_losses
from tiny_models import TOPK, assert_close, padding, prompt, under
from torch import Tensor

TOKENS = 40
FAMILIES = pytest.mark.parametrize("family", tiny_models.FAMILIES)


def gradients(model: Any, ids: Tensor, **arguments: Any) -> dict[str, Tensor]:
    """Return the loss of a step, and the gradients of all weights that have some."""
    model.zero_grad()
    out = model(ids, **{"labels": ids, **arguments})
    out.loss.backward()
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return {**found, "loss": out.loss.detach()}


def compare(model: Any, ids: Tensor, **arguments: Any) -> None:
    ours = gradients(model, ids, **arguments)
    eager = under("eager", model, lambda: gradients(model, ids, **arguments))
    assert ours.keys() == eager.keys()
    has_pools = model.config.model_type in ("deepseek_v4", "glm5_next")
    assert has_pools or not any("indexer" in name for name in ours)
    assert sum("self_attn" in name for name in ours) >= 10
    for name, tensor in ours.items():
        if tensor.any() or eager[name].any():
            assert_close(tensor, eager[name], 1e-3)


@FAMILIES
@pytest.mark.parametrize("topk", [TOPK, TOKENS])
@pytest.mark.parametrize("first", [0, 11], ids=["whole", "padded"])
def test_a_step_has_the_loss_and_gradients_of_transformers(
    family: str, topk: int, first: int
) -> None:
    """Sparse attention, and with a top-k that covers all keys dense attention."""
    model = tiny_models.make_model(family, index_topk=topk).train()
    ids, mask = prompt(2, TOKENS), padding(TOKENS, (0, TOKENS), (first, TOKENS))
    # A padding token predicts the first real token, and results of padding tokens differ.
    compare(model, ids, attention_mask=mask, labels=ids.masked_fill(mask.cumsum(-1) < 2, -100))


def test_a_step_of_more_tokens_than_attend_at_once() -> None:
    model = tiny_models.make_model("deepseek_v32", index_topk=8).train()
    compare(model, prompt(1, attention._TOKENS_AT_ONCE + 9))


def divergence(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the loss of the indexers, from transformers' own scores and attention weights."""
    inputs: list[tuple[Any, ...]] = []
    handles = [
        layer.self_attn.indexer.register_forward_pre_hook(
            lambda module, args: inputs.append((module, *args))
        )
        for layer in model.model.layers
    ]
    try:
        options = {"attention_mask": mask, "output_attentions": True, "use_cache": False}
        out = under("eager", model, lambda: model(ids, **options))
    finally:
        for handle in handles:
            handle.remove()
    total = torch.zeros(())
    for weights, (indexer, hidden, q_resid, (cos, sin), *_) in zip(
        out.attentions, inputs, strict=True
    ):
        paid = weights.detach().mean(1)
        hidden, q_resid = hidden.detach(), q_resid.detach()
        query = indexer.wq_b(q_resid).unflatten(-1, (indexer.n_heads, indexer.head_dim))
        key = indexer.k_norm(indexer.wk(hidden))[:, :, None]
        size = indexer.qk_rope_head_dim
        rotated = indexer.rope(query[..., :size], key[..., :size], cos, sin, unsqueeze_dim=2)
        query, key = (
            torch.cat([r, t[..., size:]], -1) for r, t in zip(rotated, (query, key), strict=True)
        )
        weights = indexer.weights_proj(hidden) * indexer.n_heads**-0.5 * indexer.head_dim**-0.5
        dots = torch.einsum("bsnd,btd->bsnt", query, key[:, :, 0]).relu()
        scores = torch.einsum("bsn,bsnt->bst", weights, dots)
        selected = paid > 0
        logs = scores.masked_fill(~selected, -torch.inf).log_softmax(-1)
        terms = torch.where(selected, paid * (paid.clamp(min=1e-30).log() - logs), 0.0)
        total = total + terms.sum(-1)[mask.bool()].mean()
    return total


@pytest.mark.parametrize(("topk", "padding"), [(TOPK, 0), (TOKENS, 0), (TOPK, 11)])
def test_the_loss_of_the_indexers_is_the_divergence_from_the_attention(
    topk: int, padding: int
) -> None:
    mask = tiny_models.padding(TOKENS, (0, TOKENS), (padding, TOKENS))
    model, ids = tiny_models.make_model("deepseek_v32", index_topk=topk).train(), prompt(2, TOKENS)
    weights = {n: p for n, p in model.named_parameters() if "indexer" in n}
    with indexer_losses(model) as losses:
        model(ids, attention_mask=mask, use_cache=False)
        ours = losses.total()
    wanted = divergence(model, ids, mask)
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5)
    found, expected = (torch.autograd.grad(each, [*weights.values()]) for each in (ours, wanted))
    for name, left, right in zip(weights, found, expected, strict=True):
        assert right.any(), name
        assert_close(left, right, 1e-3)


@FAMILIES
def test_the_loss_of_the_indexers_has_gradients_for_them_alone(family: str) -> None:
    model, ids = tiny_models.make_model(family).train(), prompt(1, TOKENS)
    with indexer_losses(model) as losses:
        out = model(ids, labels=ids, use_cache=False)
        losses.total().backward(retain_graph=True)
        touched = {n for n, p in model.named_parameters() if p.grad is not None}
        assert touched
        assert all("indexer" in name for name in touched)
        model.zero_grad()
        out.loss.backward()
    assert not any(p.grad is not None for n, p in model.named_parameters() if "indexer" in n)


def learning_steps(model: Any, validate: bool = False) -> list[Tensor]:
    """Return the indexers' losses of two steps, and the gradients of all weights after each."""
    found: list[Tensor] = []
    with indexer_losses(model) as losses:
        for tokens in (TOKENS, TOKENS - 7):
            model.zero_grad()
            out = model(prompt(1, tokens), labels=prompt(1, tokens), use_cache=False)
            total = losses.total()
            (out.loss + total).backward()
            found += [total.detach()]
            found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
            if validate:
                with torch.no_grad():
                    model(prompt(2, TOKENS), use_cache=False)
    return found


@pytest.mark.parametrize("what", ["a repeated forward pass", "a pass without gradients"])
def test_indexers_do_not_learn_from(what: str) -> None:
    """Activation checkpointing repeats a forward pass in the backward pass; no gradient changes."""
    model = tiny_models.make_model("deepseek_v32").train()
    plain = learning_steps(model)
    if what == "a repeated forward pass":
        # Older releases have the second.
        names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
        getattr(model, next(name for name in names if hasattr(model, name)))()
    found = learning_steps(model, validate=what == "a pass without gradients")
    for left, right in zip(found, plain, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("family", tiny_models.FAMILIES + tiny_models.LATER)
def test_learning_changes_no_result(family: str) -> None:
    model, ids = tiny_models.make_model(family).train(), prompt(2, TOKENS)
    plain = model(ids, use_cache=False).logits
    with indexer_losses(model):
        learning = model(ids, use_cache=False).logits
    assert torch.equal(plain, learning)


def test_without_a_forward_pass_there_is_no_loss() -> None:
    model = tiny_models.make_model("deepseek_v32")
    with indexer_losses(model) as losses:
        with indexer_losses(model), pytest.raises(RuntimeError, match="no layer has selec"):
            losses.total()
        model(prompt(1, TOKENS), use_cache=False)
        losses.total()


@pytest.mark.parametrize("family", tiny_models.LATER + tiny_models.WITH_ROWS)
def test_other_families_have_the_gradients_of_transformers(family: str) -> None:
    """DeepSeek-V4 falls back, with a warning; the others run on the ops."""
    model, ids = tiny_models.make_model(family).train(), prompt(2, TOKENS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(model, ids, use_cache=False)
    texts = [str(each.message) for each in caught if "custom_pypto" in str(each.message)]
    assert ["gradients are enabled" in each for each in texts] == [True] * (family == "deepseek_v4")
