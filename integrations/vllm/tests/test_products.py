"""Our products are offered beside vLLM's, and step aside."""

import importlib
from collections.abc import Iterator
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
import torch
from custom_pypto_vllm import names, register_layer

LINEAR = "vllm.model_executor.kernels.linear"
EXPERTS = "vllm.model_executor.layers.fused_moe"


@pytest.mark.parametrize(
    ("module", "kernel"),
    [("weight_products", "WeightQuantLinearKernel"), ("int8_products", "Int8LinearKernel")],
)
def test_a_kernel_is_offered_before_vllms_and_after_those_of_others(
    vllm: Any, capsys: pytest.CaptureFixture[str], module: str, kernel: str
) -> None:
    for lists in ("_POSSIBLE_KERNELS", "_POSSIBLE_INT8_KERNELS"):
        setattr(vllm.module(LINEAR), lists, {names.PlatformEnum.CPU: []})
    ours = getattr(importlib.import_module(f"custom_pypto_vllm.{module}"), kernel)
    kernels, zentorch = ours.possible[names.PlatformEnum.CPU], object()
    kernels[:] = [zentorch, ours.theirs]
    for _ in range(2):
        ours.register()
    assert kernels == [zentorch, ours, ours.theirs]
    kernels[:] = [zentorch]
    ours.register()
    assert kernels == [zentorch]
    sentence = f"vLLM has no {ours.theirs.__name__} for CPUs, so our kernel is not offered"
    assert capsys.readouterr().err == f"custom_pypto_vllm: {sentence}\n"


@pytest.fixture
def products(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the modules of products by weights of 16 bits, which all layers may have."""
    routed = vllm.owner(f"{EXPERTS}.routed_experts.RoutedExperts")
    routed.register_oot = lambda _decorated_layer_cls=None, name=None: lambda cls: cls
    import custom_pypto.core  # noqa: F401
    from custom_pypto_vllm import grouped_experts, linear_products

    monkeypatch.setattr(linear_products, "_is_served", lambda weight: True)
    yield Namespace(linear=linear_products, experts=grouped_experts)
    grouped_experts._LIBRARY._destroy()


@pytest.mark.parametrize("is_zen", [False, True])
def test_zentorchs_products_stay(vllm: Any, products: Any, is_zen: bool) -> None:
    vllm.module("vllm.platforms").current_platform = Namespace(is_zen_cpu=lambda: is_zen)
    products.linear.register()
    layer = Namespace(weight=torch.ones(2, 2))
    vllm.module("vllm.model_executor.layers.utils").dispatch_cpu_unquantized_gemm(layer, True)
    assert hasattr(layer, "cpu_linear") is not is_zen
    products.experts.is_x86_without = lambda instructions: True
    oracle, cpu = vllm.module(f"{EXPERTS}.oracle.unquantized"), object()
    vllm.owner(f"{EXPERTS}.oracle.unquantized.UnquantizedMoeBackend").CPU = cpu
    for each in ("int8", "int_wna16", "unquantized"):
        vllm.module(f"{EXPERTS}.oracle.{each}").backend_to_kernel_cls = lambda backend: ["theirs"]
    products.experts.register()
    assert oracle.backend_to_kernel_cls("another") == ["theirs"]
    ours = products.experts.GroupedExperts
    assert oracle.backend_to_kernel_cls(cpu) == (["theirs", ours] if is_zen else [ours, "theirs"])


def test_weights_of_heads_are_read_where_they_are(products: Any) -> None:
    """The op reads rows [N, K], as kv_b_proj has those of values; those of keys are copied."""
    heads, latent, nope, value, tokens = 3, 64, 32, 48, 5
    stored = torch.randn(heads * (nope + value), latent).bfloat16()

    def load(act_dtype: Any) -> None:
        keys, values = stored.T.view(latent, heads, nope + value).split([nope, value], -1)
        attention.W_UK_T, attention.W_UV = keys.permute(1, 2, 0), values.transpose(0, 1)

    attention = Namespace(process_weights_after_loading=load)
    products.linear.replace_products_of_heads(attention)
    attention.process_weights_after_loading(torch.bfloat16)
    place = stored.untyped_storage().data_ptr()
    assert attention.W_UV.untyped_storage().data_ptr() == place
    assert attention.W_UK_T.untyped_storage().data_ptr() != place
    for weight in (attention.W_UV, attention.W_UK_T):
        x = torch.randn(heads, tokens, weight.shape[1]).bfloat16()
        out = torch.empty(tokens, heads, weight.shape[2]).bfloat16()
        torch.bmm(x, weight, out=out.transpose(0, 1))
        plain = weight.as_subclass(torch.Tensor)
        torch.testing.assert_close(out.transpose(0, 1), torch.bmm(x, plain), atol=0.1, rtol=0.02)


@pytest.mark.parametrize("method", ["AutoAWQ", "AutoGPTQ", "CompressedTensorsWNA16"])
def test_experts_of_packed_integers_step_aside_where_vllm_changed(
    vllm: Any, products: Any, method: str
) -> None:
    module = names.NAMES[f"{method}MoEMethod"][0]
    vllm.remove(f"{module}.{method}MoEMethod.experts_cls")
    ours = products.experts.PackedExperts
    is_supported, sentence = ours.is_supported_config(ours, Namespace(), None, None, None)
    assert not is_supported
    assert f"({module}.{method}MoEMethod.experts_cls)" in sentence
    assert names.mismatch() is None  # all else is served


def test_nothing_is_replaced_where_vllm_changed(
    vllm: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "vllm.model_executor.layers.attention.mla_attention.MLAAttention.W_UV"
    vllm.remove(path)
    vllm.module("vllm.platforms").current_platform = Namespace(
        is_cpu=lambda: True, is_zen_cpu=lambda: False
    )
    theirs = names.dispatch_cpu_unquantized_gemm
    register_layer()
    assert names.dispatch_cpu_unquantized_gemm is theirs
    assert [path in each for each in capsys.readouterr().err.splitlines()] == [True]
