"""use_linear: layers of quantised checkpoints; modules made by hand stand for those of packages."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto_transformers import use_linear
from custom_pypto_transformers.quantized import QuantizedLinear
from tiny_models import OpCalls, assert_close
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

GPTQ, AWQ = (type(name, (nn.Module,), {}) for name in ("TorchLinear", "AwqTorchLinear"))
OF_GPTQMODEL = {"adapter": None, "online_full_had": False, "online_partial_had": False}
SIZES: dict[str, int] = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}


def pack(numbers: Tensor, bits: int, order: Any = slice(None)) -> Tensor:
    """Pack numbers from 0 along the last dimension into int32."""
    numbers = numbers.long().reshape(*numbers.shape[:-1], -1, 32 // bits)[..., order]
    return (numbers << torch.arange(0, 32, bits)).sum(-1).to(torch.int32)


def stand_in(
    kind: str, rows: int, depth: int, bits: int, group: int, **changes: Any
) -> tuple[Any, Tensor]:
    """Make a layer of random numbers, and the weight that it stands for."""
    most, half = 2**bits, 2 ** (bits - 1)
    numbers, zeros = (torch.randint(0, most, (rows, each)) for each in (depth, depth // group))
    zeros = torch.full_like(zeros, half) if kind in ("packed", "int") else zeros
    scales = torch.rand(zeros.shape) / most / 2
    weight = (numbers - zeros.repeat_interleave(group, 1)) * scales.repeat_interleave(group, 1)
    layer = nn.Linear(depth, rows, bias=False)
    del layer.weight
    values = {"in_features": depth, "out_features": rows, "bits": bits, "group_size": group}
    if kind in ("gptq", "gptq 1", "awq"):
        layer = (AWQ if kind == "awq" else GPTQ)()
        version, order = (1 if kind == "gptq 1" else 2), [0, 2, 4, 6, 1, 3, 5, 7]
        qweight, qzeros = pack(numbers, bits).t(), pack((zeros.t() - 2 + version) % most, bits)
        if kind == "awq":
            qweight, qzeros = (pack(each.t(), bits, order) for each in (numbers, zeros))
        values |= {"qweight": qweight, "qzeros": qzeros, "scales": scales.t(), "bias": None}
        values |= {"g_idx": torch.arange(depth).int() // group, "qzero_format": lambda: version}
        values |= OF_GPTQMODEL
    else:
        is_packed, signed = kind.startswith("packed"), [(x - half).char() for x in (numbers, zeros)]
        values["weight_packed" if is_packed else "weight"] = (
            pack(numbers, bits) if is_packed else signed[0]
        )
        if "asymmetric" in kind:
            values["weight_zero_point"] = pack(zeros.t(), bits).t() if is_packed else signed[1]
        weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": group}
        scheme = {"weights": SimpleNamespace(**{**weights, **changes})}
        scheme |= dict.fromkeys(["input_activations", "output_activations"])
        values |= {"weight_scale": scales}
        values["quantization_scheme"] = SimpleNamespace(**{**scheme, **changes})
    for name, value in {**values, **changes}.items():
        setattr(layer, name, nn.Parameter(value, False) if isinstance(value, Tensor) else value)
    return layer, weight


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("kind", ["packed", "packed asymmetric", "int asymmetric", "gptq 1", "awq"])
@pytest.mark.usefixtures("no_grad")
def test_tokens_are_those_of_dequantised_weights(kind: str, bits: int) -> None:
    if bits != {"awq": 4, "int asymmetric": 8}.get(kind, bits):
        pytest.skip("the format has no such weights")
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES, vocab_size=64, num_attention_heads=2)).eval()
    ours = copy.deepcopy(model)
    for name, layer in model.named_modules():
        if "proj" in name:
            group = 32 if "mlp" in name else layer.in_features
            other, layer.weight.data = stand_in(kind, *layer.weight.shape, bits, group)
            ours.set_submodule(name, other)
    use_linear(ours)
    tokens = torch.arange(9)[None]
    with OpCalls() as ops:
        assert_close(ours(tokens).logits, model(tokens).logits)
    assert [name for name, _ in ops.calls].count("npu_weight_quant_batchmatmul") == 14
    results = [each.generate(tokens, max_new_tokens=6, do_sample=False) for each in (ours, model)]
    assert torch.equal(*results)
    layer, many = ours.model.layers[0].mlp.down_proj, torch.rand(300, 96)
    layer.is_torch_fast = True
    assert_close(layer(many.bfloat16()).float(), many @ layer.weight.t(), 2e-2)
    with pytest.raises(NotImplementedError, match="save the model before"):
        ours.state_dict()


@pytest.mark.parametrize(
    ("kind", "bits", "changes", "reason"),
    [
        ("gptq", 4, {"g_idx": torch.arange(64).int() % 2}, "g_idx is an order of activations"),
        ("gptq", 4, {"linear_mode": "inference"}, "call use_linear first"),
        ("gptq", 2, {}, "weights of 2 bits"),
        ("awq", 4, {"adapter": "lora"}, "an adapter"),
        ("packed", 4, {"input_activations": "int8"}, "activations are quantised"),
        ("packed", 4, {"type": "float"}, "weights are float4"),
        ("packed", 4, {"strategy": "block"}, "scales by block"),
        ("packed", 4, {"_hf_hook": "offload"}, "has hooks"),
        ("packed", 4, {"group_size": 16}, "groups of 16"),
        ("packed", 4, {"out_features": 8}, "another than the tested releases have"),
    ],
)
def test_refused(kind: str, bits: int, changes: dict[str, Any], reason: str) -> None:
    model = nn.Sequential(stand_in(kind, 16, 64, bits, 32, **changes)[0])
    with pytest.warns(UserWarning, match=f"leaves quantised layers to their own code: .*{reason}"):
        use_linear(model)
    assert not isinstance(model[0], QuantizedLinear)
