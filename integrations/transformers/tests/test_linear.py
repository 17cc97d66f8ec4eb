"""use_linear: projections, MLPs and experts multiply by the op linear."""

import copy
import pickle
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto import core
from custom_pypto_transformers import use_linear
from custom_pypto_transformers.linear import to_latents, to_values
from tiny_models import EVERY_FAMILY, OpCalls, assert_close, make_model, padding, prompt
from torch import Tensor, nn


def with_linear(model: Any) -> Any:
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
    assert torch.equal(*[each.generate(prompt(2, 12), max_new_tokens=6) for each in (ours, model)])


@pytest.mark.parametrize("most", [None, 16])
@pytest.mark.usefixtures("no_grad")
def test_experts(monkeypatch: pytest.MonkeyPatch, most: int | None) -> None:
    isa = "amx_bf16" if most is None else "avx512_bf16"
    monkeypatch.setattr(core, "cpu_isa", lambda _: isa)
    model = make_model("deepseek_v32", torch.bfloat16)
    ours = nn.Sequential(with_linear(model))
    experts, theirs = (each.model.layers[1].mlp.experts for each in (ours[0], model))
    for tokens in (1, 16, 17):
        x = torch.randn(tokens, experts.hidden_dim, dtype=torch.bfloat16)
        chosen, weights = torch.rand(tokens, experts.num_experts).topk(2)[::-1]
        with OpCalls() as ops:
            result = experts(x, chosen, weights.bfloat16())
        assert_close(result.float(), theirs(x, chosen, weights.bfloat16()).float(), 2e-2)
        assert bool(ops.calls) == (most is None or tokens <= most)
    assert experts(x[:0], chosen[:0], weights[:0]).equal(x[:0])
    assert experts.forward.__func__  # compressed-tensors reads it
    model.config.quantization_config = SimpleNamespace(quant_method="gptq")
    with pytest.warns(UserWarning, match="experts of this quantised model have no integers"):
        use_linear(model)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert other(prompt(1, 4)).logits.equal(ours(prompt(1, 4)).logits)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("isa", ["amx_bf16", "avx512_bf16"])
@pytest.mark.usefixtures("no_grad")
def test_parts_of_heads(monkeypatch: pytest.MonkeyPatch, isa: str, rows: int) -> None:
    monkeypatch.setattr(core, "cpu_isa", lambda _: isa)
    projection = nn.Linear(48, 4 * 40, False, dtype=torch.bfloat16)
    use_linear(projection)
    x = torch.randn(4, rows, 48, dtype=torch.bfloat16)
    for step in range(4):
        part, other = projection.weight.view(4, 40, 48).split([16, 24], 1)
        with OpCalls() as ops:
            latents = to_latents(projection, x[..., :16], part)
            values = to_values(projection, x, other)
        assert_close(latents.float(), x[..., :16].float() @ part.float(), 2e-2)
        assert_close(values.float(), x.float() @ other.float().transpose(1, 2), 2e-2)
        assert bool(ops.calls) == (isa == "amx_bf16" or rows == 1)
        if step == 0:
            projection.weight.mul_(2)
        elif step == 1:  # the weight has no new version, as after a step of a fused optimizer
            projection.weight.data.mul_(2)
        else:  # another weight, where the one before was
            projection.weight = nn.Parameter(projection.weight.data.mul_(2))


@pytest.mark.usefixtures("no_grad")
def test_groups_of_heads() -> None:
    pytest.importorskip("transformers.models.deepseek_v4")
    layer = make_model("deepseek_v4", torch.bfloat16).model.layers[0].self_attn.o_a_proj
    ours = with_linear(layer)
    x = torch.randn(1, 3, layer.n_groups, layer.in_features, dtype=torch.bfloat16)
    with OpCalls() as ops:
        assert_close(ours(x).float(), layer(x).float(), 2e-2)
    assert "npu_grouped_matmul" in dict(ops.calls)


def test_gradients_are_those_of_transformers() -> None:
    model = make_model("deepseek_v32", torch.bfloat16).train()
    ours = with_linear(model)
    for each in (model, ours):
        logits(each).float().square().mean().backward()
    for (name, one), other in zip(model.named_parameters(), ours.parameters(), strict=True):
        if one.grad is not None:
            assert other.grad is not None, name
            assert_close(other.grad.float(), one.grad.float(), 0.1)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.usefixtures("no_grad")
def test_what_the_op_is_not_for_runs_as_before() -> None:
    layer = nn.Linear(8, 4, dtype=torch.float64)
    ours = with_linear(layer)
    x = torch.randn(3, 8, dtype=torch.float64)
    assert ours(x).equal(layer(x))
    layer, ours = layer.float(), ours.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert ours(x.float()).equal(layer(x.float()))
    x = x.float()
    assert pickle.loads(pickle.dumps(ours))(x).equal(ours(x))
    assert torch.func.jacrev(ours)(x).equal(torch.func.jacrev(layer)(x))
    for trace in (torch.fx.symbolic_trace, partial(torch.jit.trace, example_inputs=(x,))):
        assert trace(ours)(x).equal(layer(x))
    assert ours.state_dict().keys() == layer.state_dict().keys()


@pytest.mark.usefixtures("no_grad")
def test_one_graph_without_experts() -> None:
    model = make_model("deepseek_v32", num_hidden_layers=1, first_k_dense_replace=1)
    graph = torch.compile(with_linear(model), backend="eager", fullgraph=True)
    ids = prompt(2, 12)
    assert_close(graph(ids, use_cache=False).logits, model(ids).logits)
