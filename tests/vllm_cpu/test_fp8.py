"""Checkpoints in blocks of fp8, as the released ones are."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import make_checkpoint, prompts
from engine import engine, generate
from safetensors.torch import load_file, save_file
from tiny_models import DENSE
from torch import Tensor
from torch.nn import functional

BLOCK = 128
# A row of blocks belongs to one of the weights that vLLM joins.
SIZES = {
    **DENSE,
    "hidden_size": 256,
    "intermediate_size": 256,
    "kv_lora_rank": BLOCK,
    "q_lora_rank": BLOCK,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 64,
    "v_head_dim": 64,
    "index_head_dim": BLOCK,
}
# What the released checkpoints leave in bfloat16.
PLAIN = ("embed_tokens", "lm_head", "norm", "weights_proj")


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = weight.shape
    padded = functional.pad(weight, (0, -columns % BLOCK, 0, -rows % BLOCK))
    blocks = padded.unflatten(1, (-1, BLOCK)).unflatten(0, (-1, BLOCK))
    scales = blocks.abs().amax((1, 3)) / torch.finfo(torch.float8_e4m3fn).max
    return (weight / expand(scales, weight)).to(torch.float8_e4m3fn), scales


def expand(scales: Tensor, weight: Tensor) -> Tensor:
    rows, columns = weight.shape
    return scales.repeat_interleave(BLOCK, 0)[:rows].repeat_interleave(BLOCK, 1)[:, :columns]


def dequantise(weight: Tensor, scales: Tensor) -> Tensor:
    return (weight.float() * expand(scales, weight)).bfloat16()


def make_both(folder: Path) -> tuple[Path, Path]:
    """Write a checkpoint in blocks of fp8, and one of the same values in bfloat16."""
    quantised, plain = folder / "quantised", folder / "plain"
    for target in (quantised, plain):
        make_checkpoint(target, "DeepseekV32", **SIZES)
    values: dict[str, Tensor] = {}
    blocks: dict[str, Tensor] = {}
    for name, value in load_file(plain / "model.safetensors").items():
        values[name] = blocks[name] = value.bfloat16()
        if value.dim() == 2 and not any(each in name for each in PLAIN):
            blocks[name], blocks[f"{name}_scale_inv"] = quantise(value)
            values[name] = dequantise(blocks[name], blocks[f"{name}_scale_inv"])
    for target, tensors in ((plain, values), (quantised, blocks)):
        save_file(tensors, target / "model.safetensors", {"format": "pt"})
    settings = {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [BLOCK, BLOCK],
    }
    config = json.loads((quantised / "config.json").read_text())
    (quantised / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))
    return quantised, plain


def test_a_checkpoint_has_the_tokens_of_the_values_that_it_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another product takes the place of vLLM's, which needs AMX: all but it is shown."""
    from custom_pypto_vllm import checkpoint, served
    from vllm.model_executor.kernels.linear.scaled_mm.cpu import CPUFp8BlockScaledMMKernel

    shapes = []

    def keep(kernel: Any, layer: Any) -> None:
        shapes.append(layer.weight.shape)

    def multiply(kernel: Any, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return functional.linear(x, dequantise(layer.weight, layer.weight_scale_inv), bias)

    quantised, plain = make_both(tmp_path)
    batch = prompts(5, 40, 100)
    with engine(plain, dtype="bfloat16") as llm:
        tokens = generate(llm, batch)
    for module in (served, checkpoint):
        monkeypatch.setattr(module, "has", lambda instructions: True)
    monkeypatch.setattr(CPUFp8BlockScaledMMKernel, "is_supported", lambda *args: (True, None))
    monkeypatch.setattr(CPUFp8BlockScaledMMKernel, "process_weights_after_loading", keep)
    monkeypatch.setattr(CPUFp8BlockScaledMMKernel, "apply_weights", multiply)
    with engine(quantised, dtype="bfloat16") as llm:
        found = generate(llm, batch)
    assert shapes
    assert found == tokens
