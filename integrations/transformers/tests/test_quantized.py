"""use_linear: layers of quantised checkpoints; layers made by hand stand for those of packages."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto_transformers import quantized, use_linear
from custom_pypto_transformers.quantized import QuantizedLinear
from tiny_models import OpCalls, assert_close, make_model, prompt
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = LlamaConfig(
    vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2
)
ROWS = "input_activations"
NAMES = {"gptq": "TorchLinear", "awq": "AwqTorchLinear"}


def pack(numbers: Tensor, bits: int, order: Any = slice(None)) -> Tensor:
    """Pack numbers from 0 along the last dimension into int32."""
    numbers = numbers.long().reshape(*numbers.shape[:-1], -1, 32 // bits)[..., order]
    return (numbers << torch.arange(0, 32, bits)).sum(-1).to(torch.int32)


def stand_in(kind: str, rows: int, depth: int, bits: int, group: int, **changes: Any) -> Any:
    """Make a layer of random numbers, and the weight that it stands for."""
    most, half, order = 2**bits, 2 ** (bits - 1), [0, 2, 4, 6, 1, 3, 5, 7]
    numbers, zeros = (torch.randint(0, most, (rows, each)) for each in (depth, depth // group))
    zeros = torch.full_like(zeros, half) if kind == "packed" else zeros
    scales = torch.rand(zeros.shape) / most / 2
    weight = (numbers - zeros.repeat_interleave(group, 1)) * scales.repeat_interleave(group, 1)
    layer = type(NAMES[kind], (nn.Linear,), {}) if kind in NAMES else nn.Linear
    values: dict[str, Any] = {"bits": bits, "group_size": group, "weight_scale": scales}
    values |= {"scales": scales.t(), "g_idx": torch.arange(depth).int() // group}
    values |= dict.fromkeys(["adapter", "online_full_had", "online_partial_had"])
    if kind == "gptq":
        values["qweight"], values["qzero_format"] = pack(numbers, bits).t(), lambda: 1
        values["qzeros"] = pack((zeros.t() - 1) % most, bits)
    elif kind == "awq":
        values["qweight"], values["qzeros"] = (pack(x.t(), bits, order) for x in (numbers, zeros))
    elif kind == "int":
        values |= {"weight": numbers - half, "weight_zero_point": zeros - half}
    else:
        values["weight_packed"] = pack(numbers, bits)
        values["weight_zero_point"] = None if kind == "packed" else pack(zeros.t(), bits).t()
    if kind not in NAMES:
        scheme = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": group}
        scheme |= {"input_activations": None, "output_activations": None, **changes}
        values["quantization_scheme"] = SimpleNamespace(**scheme, weights=SimpleNamespace(**scheme))
    made: Any = layer(depth, rows, bias=False)
    del made.weight
    for name, value in {**values, **changes}.items():
        value = value.char() if isinstance(value, Tensor) and value.dtype == torch.int64 else value
        setattr(made, name, nn.Parameter(value, False) if isinstance(value, Tensor) else value)
    return made, weight


def compare(ours: Any, theirs: Any) -> None:
    use_linear(ours)
    tokens = torch.arange(9)[None]
    with OpCalls() as ops:
        assert_close(ours(tokens).logits, theirs(tokens).logits)
    assert [name for name, _ in ops.calls].count("npu_weight_quant_batchmatmul") == 14
    results = [each.generate(tokens, max_new_tokens=6, do_sample=False) for each in (ours, theirs)]
    assert torch.equal(*results)


@pytest.mark.parametrize(
    "case", ["packed 4", "packed 8", "zeros 4", "int 8", "gptq 4", "gptq 8", "awq 4"]
)
@pytest.mark.usefixtures("no_grad")
def test_tokens_are_those_of_dequantised_weights(case: str, monkeypatch: Any) -> None:
    kind, bits = case.split()
    model = LlamaForCausalLM(CONFIG).eval()
    ours = copy.deepcopy(model)
    for name, layer in model.named_modules():
        if "proj" in name:
            group = 32 if "mlp" in name else layer.in_features
            other, layer.weight.data = stand_in(kind, *layer.weight.shape, int(bits), group)
            ours.set_submodule(name, other)
    compare(ours, model)
    down, many = ours.model.layers[0].mlp.down_proj, torch.rand(300, 96)
    for is_fast in (False, True):
        monkeypatch.setattr(quantized, "is_torch_fast", lambda _, is_fast=is_fast: is_fast)
        with OpCalls() as ops:
            assert_close(down(many.bfloat16()).float(), many @ down.weight.t(), 2e-2)
        assert bool(ops.calls) != is_fast
    with pytest.raises(NotImplementedError, match="save the model before"):
        ours.state_dict()


@pytest.mark.usefixtures("no_grad")
def test_a_checkpoint_of_compressed_tensors(tmp_path: Path) -> None:
    package = pytest.importorskip("compressed_tensors")
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG)
    weights = {"num_bits": 4, "strategy": "group", "group_size": 32}
    groups = {"all": {"targets": ["Linear"], "weights": weights}}
    config = package.QuantizationConfig(config_groups=groups, ignore=["lm_head"])
    package.quantization.apply_quantization_config(model, config)
    for layer in model.modules():
        if hasattr(layer, "weight_scale"):
            nn.init.uniform_(layer.weight_scale, 0.005, 0.01)
    compressor = package.ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(tmp_path)
    compressor.update_config(tmp_path)
    compare(*(LlamaForCausalLM.from_pretrained(tmp_path) for _ in range(2)))


def rows_of_int8(**changes: Any) -> Any:
    form = {"type": "int", "num_bits": 8, "strategy": "token", "dynamic": True, "symmetric": True}
    return SimpleNamespace(**{**form, **changes})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("row_scale", [None, 0.02])
@pytest.mark.usefixtures("no_grad")
def test_rows_of_int8(row_scale: float | None, dtype: torch.dtype) -> None:
    changes: dict[str, Any] = {ROWS: rows_of_int8()}
    if row_scale is not None:
        changes[ROWS] = rows_of_int8(strategy="tensor", dynamic=False)
        changes["input_scale"] = torch.tensor([row_scale])
    layer, weight = stand_in("packed", 48, 64, 8, 64, **changes)
    layer.bias = nn.Parameter(torch.rand(48))
    model = nn.Sequential(layer)
    use_linear(model)
    model.to(dtype)
    x = torch.randn(2, 5, 64, dtype=dtype)
    scale = row_scale or x.float().abs().amax(-1, keepdim=True) / 127
    rows = (x.float() / scale).clamp(-128, 127).round() * scale
    with OpCalls() as ops:
        result = model(x)
    assert_close(
        result.float(), rows @ weight.t() + layer.bias, 1e-5 if dtype.itemsize == 4 else 1e-2
    )
    assert "npu_quant_matmul" in dict(ops.calls)
    assert model(x[0, 0]).equal(result[0, 0])
    assert model(x[:, :0]).shape == (2, 0, 48)


@pytest.mark.usefixtures("no_grad")
def test_attention_reads_its_weights() -> None:
    model = make_model("deepseek_v32")
    ours = copy.deepcopy(model)
    for name, layer in model.named_modules():
        if name.endswith(("kv_b_proj", "weights_proj", "o_proj")):
            other, layer.weight.data = stand_in("packed", *layer.weight.shape, 4, layer.in_features)
            ours.set_submodule(name, other)
    use_linear(ours)
    with OpCalls() as ops:
        assert_close(ours(prompt(1, 40)).logits, model(prompt(1, 40)).logits)
    assert "npu_sparse_flash_attention" in dict(ops.calls)


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "g_idx is an order of activations": ("gptq 4", {"g_idx": torch.arange(64).int() % 2}),
    "call use_linear first": ("gptq 4", {"linear_mode": "inference"}),
    "weights of 2 bits": ("gptq 2", {}),
    "an adapter": ("awq 4", {"adapter": "lora"}),
    "activations have zero points": ("packed 8", {ROWS: rows_of_int8(symmetric=False)}),
    "beside weights of int4": ("packed 4", {ROWS: rows_of_int8()}),
    "activations have scales by group": ("packed 8", {ROWS: rows_of_int8(strategy="group")}),
    "scales by block": ("packed 4", {"strategy": "block"}),
    "has hooks": ("packed 4", {"_hf_hook": "offload"}),
    "groups of 16": ("packed 4", {"group_size": 16}),
    "another than the tested releases have": ("packed 4", {"out_features": 8}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason: str) -> None:
    case, changes = REFUSED[reason]
    kind, bits = case.split()
    model = nn.Sequential(stand_in(kind, 16, 64, int(bits), 32, **changes)[0])
    with pytest.warns(UserWarning, match=f"leaves quantised layers to their own code: .*{reason}"):
        use_linear(model)
    assert not isinstance(model[0], QuantizedLinear)
