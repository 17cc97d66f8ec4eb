"""Checkpoints with weights of 4 or 8 bits, of a dense model and of one with sparse attention."""

import json
from pathlib import Path
from typing import Any, NamedTuple

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


class Format(NamedTuple):
    method: str
    bits: int
    group: int
    """-1: all numbers of a row."""
    zeros: bool = False


FORMATS = [
    Format("compressed-tensors", 4, 32),
    Format("compressed-tensors", 4, 64, zeros=True),
    Format("compressed-tensors", 8, -1),
    Format("gptq", 4, 64),
    Format("awq", 4, 32, zeros=True),
]


def pack(numbers: Tensor, bits: int) -> Tensor:
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return (numbers.int().unflatten(-1, (-1, 32 // bits)) << shifts).sum(-1, dtype=torch.int32)


def quantise(name: str, weight: Tensor, form: Format) -> tuple[dict[str, Tensor], Tensor]:
    """Return the tensors of a format, and the weight that they stand for."""
    (rows, columns), half = weight.shape, 2 ** (form.bits - 1)
    group = columns if form.group == -1 else form.group
    grouped = weight.unflatten(1, (-1, group))
    scales = grouped.abs().amax(2) / (half - 1)
    zeros = torch.full_like(scales, half)
    zeros += torch.randint_like(scales, -1, 2) if form.zeros else 0
    numbers = (grouped / scales[..., None] + zeros[..., None]).round().clamp(0, 2 * half - 1)
    value = ((numbers - zeros[..., None]) * scales[..., None]).flatten(1)
    numbers = numbers.flatten(1)
    if form.method == "compressed-tensors":
        tensors = {"packed": pack(numbers, form.bits), "scale": scales, "shape": torch.tensor(weight.shape)}
        if form.zeros:
            tensors["zero_point"] = pack(zeros.t(), form.bits).t()
        tensors = {f"weight_{each}": tensor for each, tensor in tensors.items()}
    elif form.method == "gptq":
        tensors = {"qweight": pack(numbers, form.bits).t(), "qzeros": pack(zeros.t() - 1, form.bits)}
        tensors |= {"scales": scales.t(), "g_idx": torch.arange(columns, dtype=torch.int32) // group}
    else:
        in_order = (each.t().unflatten(1, (-1, 8))[..., AWQ_ORDER].flatten(1) for each in (numbers, zeros))
        tensors = dict(zip(("qweight", "qzeros"), (pack(each, 4) for each in in_order), strict=True))
        tensors["scales"] = scales.t()
    return {f"{name}{key}": each.contiguous() for key, each in tensors.items()}, value


def settings(form: Format, ignored: list[str]) -> dict[str, Any]:
    """Return what config.json says of a format."""
    if form.method != "compressed-tensors":
        own = {"zero_point": True} if form.zeros else {"desc_act": False, "sym": True}
        return {"quant_method": form.method, "bits": form.bits, "group_size": form.group, **own}
    weights = {"type": "int", "num_bits": form.bits, "symmetric": not form.zeros}
    weights |= {"strategy": "channel"} if form.group == -1 else {"strategy": "group", "group_size": form.group}
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": form.method, "format": "pack-quantized", "ignore": ignored, "config_groups": {"0": group}}


def quantise_checkpoint(source: Path, target: Path, form: Format, plain: tuple[str, ...]) -> None:
    """Write a checkpoint in a format; the source gets the weights that it stands for."""
    values, tensors, ignored = load_file(source / "model.safetensors"), {}, []
    for name, value in values.items():
        if value.dim() == 2 and not any(each in name for each in plain):
            made, values[name] = quantise(name.removesuffix("weight"), value, form)
            tensors |= made
        else:
            tensors[name] = value
            ignored.append(name.removesuffix(".weight"))
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = settings(form, ignored)
    target.mkdir()
    (target / "config.json").write_text(json.dumps(config))
    for folder, written in ((source, values), (target, tensors)):
        save_file(written, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_dense_model(form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.model_executor.layers.quantization import auto_awq, auto_gptq

    # vLLM gives these two 16 bits only. With 32, transformers' tokens are equal.
    for cls in (auto_awq.AutoAWQConfig, auto_gptq.AutoGPTQConfig):
        monkeypatch.setattr(cls, "get_supported_act_dtypes", lambda *_: [torch.float32])
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, **HEADS, initializer_range=0.2, pad_token_id=None)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "plain")
    check(tmp_path, form, ("embed_tokens", "lm_head"))


def check(folder: Path, form: Format, plain: tuple[str, ...]) -> None:
    quantise_checkpoint(folder / "plain", folder / "quantised", form, plain)
    batch = prompts(5, 40, 100)
    with engine(folder / "quantised") as llm:
        tokens = generate(llm, batch)
    reference = load_reference(folder / "plain")
    gaps = [full_forward_gap(reference, *each) for each in zip(batch, tokens, strict=True)]
    assert max(gaps) < GAP, gaps


def test_sparse_attention(tmp_path: Path) -> None:
    """Its kv_b_proj is quantised, too, and read before the first step."""
    make_checkpoint(tmp_path / "plain", "DeepseekV32", **SIZES_OF_V32)
    check(tmp_path, FORMATS[1], ("embed_tokens", "lm_head", "indexer.wk", "weights_proj"))
