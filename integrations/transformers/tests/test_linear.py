"""use_linear: projections, MLPs and experts multiply by the op linear."""

import copy
import pickle
from typing import Any

import pytest
import torch
from custom_pypto_transformers import use_linear
from custom_pypto_transformers.linear import Linear
from tiny_models import EVERY_FAMILY, OpCalls, assert_close, make_model, padding, prompt
from torch import Tensor, nn


def with_linear(model: Any) -> Any:
    """Return a copy; experts of both models then have the same implementation as before."""
    other = copy.deepcopy(model)
    use_linear(other)
    return other


def logits(model: Any) -> Tensor:
    result: Tensor = model(prompt(2, 12), attention_mask=padding(12, (0, 12), (3, 12))).logits
    return result


@EVERY_FAMILY
@pytest.mark.usefixtures("no_grad")
def test_tokens_are_those_of_transformers(model: Any) -> None:
    ours = with_linear(model)
    with OpCalls() as ops:
        assert_close(logits(ours), logits(model))
    assert "linear" in dict(ops.calls)
    tokens = [each.generate(prompt(2, 12), max_new_tokens=6) for each in (ours, model)]
    assert torch.equal(*tokens)


@pytest.mark.usefixtures("no_grad")
def test_no_product_of_a_layer_is_left() -> None:
    model = make_model("deepseek_v32", torch.bfloat16)
    ours = with_linear(model)
    assert_close(logits(ours).float(), logits(model).float(), 3e-2)
    layers = [each for each in ours.modules() if isinstance(each, nn.Linear)]
    assert {type(each) for each in layers} == {Linear}
    with OpCalls() as ops:
        logits(ours)
    assert sum(name == "linear" for name, _ in ops.calls) > len(layers)  # experts, too


def test_gradients_are_those_of_transformers() -> None:
    model = make_model("deepseek_v32").train()
    ours = with_linear(model)
    for each in (model, ours):
        logits(each).square().mean().backward()
    for (name, one), other in zip(model.named_parameters(), ours.parameters(), strict=True):
        if one.grad is not None:
            assert other.grad is not None, name
            assert_close(other.grad, one.grad, 1e-3)


@pytest.mark.usefixtures("no_grad")
def test_what_the_op_is_not_for_runs_as_before() -> None:
    layer = nn.Linear(8, 4, dtype=torch.float64)
    ours = copy.deepcopy(layer)
    use_linear(ours)
    x = torch.randn(3, 8, dtype=torch.float64)
    assert ours(x).equal(layer(x))
    layer, ours = layer.float(), ours.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert ours(x.float()).equal(layer(x.float()))
    assert pickle.loads(pickle.dumps(ours))(x.float()).equal(ours(x.float()))
    assert ours.state_dict().keys() == layer.state_dict().keys()


@pytest.mark.usefixtures("no_grad")
def test_one_graph_without_experts() -> None:
    model = make_model("deepseek_v32", num_hidden_layers=1, first_k_dense_replace=1)
    ours = with_linear(model)
    graph = torch.compile(ours, backend="eager", fullgraph=True)
    ids = prompt(2, 12)
    assert_close(graph(ids, use_cache=False).logits, model(ids).logits)
