"""Rows equal those of transformers' DeepSeek-V4 compressors, for whole sequences and chunks."""

from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
from custom_pypto_compressor import norm_and_rotate
from torch import Tensor, nn

B, LENGTH, HIDDEN = 2, 83, 48
RATIOS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16}


class NoIndexer(nn.Module):
    """Selects nothing."""

    def forward(self, x: Tensor, *_: Any) -> Tensor:
        """Return -1 for each token."""
        return torch.full((*x.shape[:2], 1), -1)


def make_compressor(name: str) -> tuple[nn.Module, Any]:
    """Return a compressor with random weights, and its empty cache."""
    # Here, since environments that run other tests of this folder have no transformers.
    import transformers.models.deepseek_v4.modeling_deepseek_v4 as v4
    from transformers import DeepseekV4Config

    config = DeepseekV4Config(
        hidden_size=HIDDEN,
        head_dim=32,
        q_lora_rank=16,
        compress_rates=RATIOS,
        num_hidden_layers=2,
        layer_types=[*RATIOS],
        mlp_layer_types=["moe"] * 2,
        default_num_hash_layers=0,
        partial_rotary_factor=0.25,
    )
    torch.manual_seed(0)
    compressor = getattr(v4, f"DeepseekV4{name}Compressor")(config).eval()
    for parameter in compressor.parameters():
        parameter.data.normal_(std=0.3)
    if name == "CSA":
        compressor.indexer = NoIndexer()
    return compressor, getattr(v4, f"DeepseekV4{name}Cache")(config)


def rotated(compressor: Any, rows: Tensor, first: int) -> Tensor:
    """Norm and rotation of rows from number `first` on, by transformers' weight and angles."""
    positions = torch.arange(first, first + rows.shape[1]).expand(B, -1) * compressor.compress_rate
    angles = compressor.rotary_emb(rows, position_ids=positions, layer_type="compress")
    cos, sin = (each.repeat_interleave(2, -1) for each in angles)
    return norm_and_rotate(rows, compressor.kv_norm.weight, cos, sin)


@pytest.mark.parametrize(("name", "coff"), [("CSA", 2), ("HCA", 1)])
@pytest.mark.parametrize("chunks", [(83,), (50, 1, 1, 1, 7, 23), (1,) * 83])
@torch.inference_mode()
def test_rows_are_those_of_transformers(name: str, coff: int, chunks: tuple[int, ...]) -> None:
    compressor, layer = make_compressor(name)
    cache = SimpleNamespace(layers=[layer])
    x = torch.randn(B, LENGTH, HIDDEN)
    ratio, width = compressor.compress_rate, coff * 32
    state = torch.full((2 * B * 6, 16, 2 * width), float("nan"))
    pages = torch.arange(1, B * 6 + 1).reshape(B, 6)
    rows = []
    for start, end in pairwise(accumulate(chunks, initial=0)):
        positions = torch.arange(start, end).expand(B, -1)
        expected, _ = compressor(x[:, start:end], None, positions, cache, 0)
        closed = torch.ops.custom_pypto.npu_compressor(
            x[:, start:end],
            compressor.kv_proj.weight,
            compressor.gate_proj.weight,
            state,
            compressor.position_bias,
            ratio,
            state_block_table=pages,
            start_pos=torch.tensor([start] * B),
            coff=coff,
        )
        rows.append(rotated(compressor, closed[:, : end // ratio - start // ratio], start // ratio))
        torch.testing.assert_close(torch.cat(rows, 1)[:, None], expected, rtol=1e-4, atol=1e-5)
    assert expected.shape[2] == LENGTH // ratio
