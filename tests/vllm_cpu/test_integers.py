"""Checkpoints with weights of 4 or 8 bits, of a dense model and of one with sparse attention."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from checkpoints import load_reference, make_checkpoint, prompts
from engine import engine, generate
from safetensors.torch import load_file, save_file
from test_fp8 import SIZES as SIZES_OF_V32
from tiny_models import VOCABULARY
from torch import Tensor

from examples.vllm_serve.checkpoint import GAP, full_forward_gap

SIZES = {"vocab_size": VOCABULARY, "hidden_size": 128, "intermediate_size": 192}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
# The method, bits of a weight, numbers of a group (-1: a row), whether there are zero points.
FORMATS = [
    *(("ct", 4, 32, False), ("ct", 4, 64, True), ("ct", 8, -1, False)),
    *(("gptq", 4, 64, False), ("awq", 4, 32, True)),
    # Activations of 8 bits, too: by row, or by a scale of the checkpoint.
    *(("int8", 8, -1, False), ("static int8", 8, -1, False)),
    *(("int8 of a range", 8, -1, False), ("static int8 of a range", 8, -1, False)),
]
INPUT_SCALE, INPUT_ZERO = 0.05, 3
NO_EXPERTS = ["self_attn", "layers.0.", "shared_experts", "mlp.gate", "lm_head"]


def pack(numbers: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return (numbers.int().unflatten(-1, (-1, 32 // bits)) << shifts).sum(-1, dtype=torch.int32)


def quantise(weight: Tensor, form: Any) -> tuple[dict[str, Tensor], Tensor]:
    """Return the tensors of a format, and the weight that they stand for."""
    method, bits, group, has_zeros = form
    grouped, half = weight.unflatten(1, (-1, group)) if group > 0 else weight[:, None], 2**bits // 2
    scales = grouped.abs().amax(2) / (half - 1)
    if "static" in method:
        scales = scales.amax().expand_as(scales)
    zeros = half + torch.randint_like(scales, -1, 2) * has_zeros
    numbers = (grouped / scales[..., None] + zeros[..., None]).round().clamp(0, 2 * half - 1)
    value = ((numbers - zeros[..., None]) * scales[..., None]).flatten(1)
    numbers = numbers.flatten(1)
    if "int8" in method:
        own = {"weight": (numbers - half).to(torch.int8), "weight_scale": scales}
        if "static" in method:
            own |= {"weight_scale": scales[:1, 0], "input_scale": torch.tensor([INPUT_SCALE])}
        if "static" in method and "range" in method:
            own["input_zero_point"] = torch.tensor([INPUT_ZERO], dtype=torch.int8)
        return own, value
    if method == "ct":
        zero_points = {"weight_zero_point": pack(zeros.t(), bits).t()} if has_zeros else {}
        packed = {"weight_packed": pack(numbers, bits), "weight_shape": torch.tensor(weight.shape)}
        return {**packed, "weight_scale": scales, **zero_points}, value
    if method == "gptq":
        packed = {"qweight": pack(numbers, bits).t(), "qzeros": pack(zeros.t() - 1, bits)}
        packed["g_idx"] = torch.arange(weight.shape[1], dtype=torch.int32) // group
    else:
        pairs = ("qweight", numbers), ("qzeros", zeros)
        in_order = {k: v.t().unflatten(1, (-1, 8))[..., AWQ_ORDER].flatten(1) for k, v in pairs}
        packed = {name: pack(each, bits) for name, each in in_order.items()}
    return {**packed, "scales": scales.t()}, value


def settings(form: Any, ignored: list[str], only: str) -> dict[str, Any]:
    """Return what config.json says of a format."""
    method, bits, group, has_zeros = form
    if method in ("gptq", "awq"):
        own = {"zero_point": True} if has_zeros else {"desc_act": False, "sym": True}
        if only:
            own |= {"modules_in_block_to_quantize": [only], "modules_to_not_convert": NO_EXPERTS}
        return {"quant_method": method, "bits": bits, "group_size": group, **own}
    weights: dict[str, Any] = {"type": "int", "num_bits": bits, "symmetric": not has_zeros}
    weights |= {"strategy": "group", "group_size": group} if group > 0 else {"strategy": "channel"}
    targets = {"targets": ["Linear"], "weights": weights}
    known = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ignored}
    if "int8" in method:
        by = "tensor" if "static" in method else "token"
        inputs = weights | {"strategy": by, "dynamic": by == "token"}
        inputs["symmetric"] = "range" not in method
        targets["weights"] = weights | ({"strategy": "tensor"} if by == "tensor" else {})
        targets, known["format"] = targets | {"input_activations": inputs}, "int-quantized"
    return {**known, "config_groups": {"0": targets}}


def round_inputs(model: Any, method: str) -> None:
    """Round what enters the layers as their products do; kv_b_proj is split into 16 bits."""

    def rounded(_: Any, inputs: Any) -> Tensor:
        (x,), zero = inputs, torch.zeros(())
        scale = x.abs().amax(-1, keepdim=True) / 127
        if "range" in method:
            low = x.amin(-1, keepdim=True).clamp(max=0)
            scale = (x.amax(-1, keepdim=True).clamp(min=0) - low) / 255
            zero = torch.tensor(INPUT_ZERO) if "static" in method else (-128 - low / scale).round()
        if "static" in method:
            scale = torch.tensor(INPUT_SCALE)
        return (((x / scale).round() + zero).clamp(-128, 127) - zero) * scale

    for name, each in model.named_modules():
        if isinstance(each, torch.nn.Linear) and not name.endswith(("lm_head", "kv_b_proj")):
            each.register_forward_pre_hook(rounded)


def assert_right(plain: Path, form: Any, *more: str, only: str = "") -> None:
    """Quantise a checkpoint, and compare tokens with those of the weights that it stands for."""
    values, tensors, ignored = load_file(plain / "model.safetensors"), {}, []
    for name, value in values.items():
        start = name.rpartition("weight")[0]
        if (
            value.dim() == 1
            or only not in name
            or any(each in name for each in ("embed", "lm_head", *more))
        ):
            tensors[name] = value
            ignored.append(start[:-1])
        else:
            made, values[name] = quantise(value, form)
            tensors |= {f"{start}{key}": each.contiguous() for key, each in made.items()}
    config = json.loads((plain / "config.json").read_text())
    config["quantization_config"] = settings(form, ignored, only)
    quantised = plain / "quantised"
    quantised.mkdir()
    (quantised / "config.json").write_text(json.dumps(config))
    for folder, written in ((plain, values), (quantised, tensors)):
        save_file(written, folder / "model.safetensors", {"format": "pt"})
    batch = prompts(5, 40, 100)
    with engine(quantised) as llm:
        tokens = generate(llm, batch)
    reference = load_reference(plain)
    if "int8" in form[0] and not only:
        round_inputs(reference, form[0])
    assert max(full_forward_gap(reference, *each) for each in zip(batch, tokens, strict=True)) < GAP


@pytest.fixture(autouse=True)
def _without_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities = {**torch.cpu.get_capabilities(), "amx_tile": False}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)


def test_with_amx_exact_products_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from custom_pypto_vllm.weight_products import WeightQuantLinearKernel
    from vllm.scalar_type import scalar_types

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": True})
    layer = SimpleNamespace(weight_type=scalar_types.uint4b8, partition_weight_shape=(64, 64))
    vars(layer).update(group_size=32, zero_points=False, act_type=torch.bfloat16)
    assert "int8 activations" in str(WeightQuantLinearKernel.can_implement(layer)[1])
    monkeypatch.setenv("VLLM_CPU_INT4_W4A8", "0")
    assert WeightQuantLinearKernel.can_implement(layer) == (True, None)


def allow_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM gives these two 16 bits only. With 32, transformers' tokens are equal."""
    from vllm.model_executor.layers.quantization import auto_awq, auto_gptq

    for cls in (auto_awq.AutoAWQConfig, auto_gptq.AutoGPTQConfig):
        monkeypatch.setattr(cls, "get_supported_act_dtypes", lambda *_: [torch.float32])


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_dense_model(form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_32_bits(monkeypatch)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, **HEADS, initializer_range=0.2, pad_token_id=None)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    assert_right(tmp_path, form)


@pytest.mark.parametrize("form", [FORMATS[1], FORMATS[5]], ids=str)
def test_sparse_attention(form: Any, tmp_path: Path) -> None:
    """kv_b_proj is quantised, too; vLLM reads it before the first step."""
    # Where rounding swaps two activations of 8 bits, the indexer would select other keys.
    changes = {"index_topk": 256} if "int8" in form[0] else {}
    make_checkpoint(tmp_path, "DeepseekV32", **{**SIZES_OF_V32, **changes})
    assert_right(tmp_path, form, "indexer.wk", "weights_proj")


@pytest.mark.parametrize("form", [*FORMATS[:2], ("ct", 8, 32, False), *FORMATS[3:6]], ids=str)
def test_experts(form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Activations of experts keep their bits, also where the checkpoint has int8."""
    allow_32_bits(monkeypatch)
    changes = {"first_k_dense_replace": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    family = "GlmMoeDsa" if form == FORMATS[5] else "DeepseekV32"
    make_checkpoint(tmp_path, family, **{**SIZES_OF_V32, **changes})
    assert_right(tmp_path, form, only="mlp.experts.")


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_experts_in_16_bits_are_those_in_32(bits: int) -> None:
    import custom_pypto.core  # noqa: F401
    from custom_pypto_vllm import grouped_experts  # noqa: F401

    experts, hidden, inner, tokens = 4, 64, 96, 300
    first, second = torch.randn(experts, 2 * inner, hidden), torch.randn(experts, hidden, inner)
    factors: list[Any] = [None] * 4
    if bits < 16:
        shapes = (experts, 2, 2 * inner), (experts, 3, hidden)
        factors = [torch.rand(each).bfloat16() for each in (*shapes[:1] * 2, *shapes[1:] * 2)]
        whole = [(each * 2).round().clamp(-8, 7).to(torch.int8) for each in (first, second)]
        first, second = whole if bits == 8 else [pack(each.int() & 15, 4) for each in whole]
    else:
        first, second = first.bfloat16(), second.bfloat16()
    x = (torch.randn(tokens, hidden) / 64).bfloat16()
    ids = torch.stack([torch.randperm(experts + 1)[:2] for _ in range(tokens)]).int() - 1
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        found.append(torch.empty(tokens, hidden, dtype=dtype))
        weights = [each.to(dtype) if bits == 16 else each for each in (first, second)]
        inputs = x.to(dtype), *weights, torch.full((tokens, 2), 0.5), ids, 1.0
        own = [None if each is None else each.to(dtype) for each in factors]
        torch.ops.custom_pypto_vllm.multiply_by_experts(found[-1], *inputs, own)
    assert (found[0] - found[1]).norm() / found[1].norm() < 0.01
