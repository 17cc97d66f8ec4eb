"""The baselines compute the same as the ops, or a comparison of times would mean nothing."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from custom_pypto.core import reference
from custom_pypto_sparse_attention.ops import TOP_K
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from torch import Tensor
from transformers.models.deepseek_v4 import modeling_deepseek_v4

from benchmarks import cpu
from benchmarks.case import normal
from benchmarks.cases.attention import HEADS, LATENT, PUBLISHED_LATENTS, ROPE
from benchmarks.eager import (
    Baseline,
    FusedArguments,
    attend_exactly,
    attend_to_rows,
    select_in_sequence,
    select_in_tensor_dtype,
)
from benchmarks.layers import fold
from examples.sparse_decode import layer
from examples.sparse_decode.session import Session

Attend = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


@pytest.mark.parametrize("baseline", [Baseline(), Baseline.in_fp32()])
def test_eager_baseline_computes_the_fused_op(baseline: Baseline) -> None:
    session = Session(dataclasses.replace(layer.SMALL, lengths=(2300, 130), steps=1))
    for _ in session.prefill():
        pass
    step = session.next_step()
    ours = FusedArguments(*(each.float() if each.is_floating_point() else each for each in step))
    theirs = FusedArguments(*(each.clone() for each in ours))
    found = reference("npu_sparse_attention_pto")
    assert found is not None
    expected = found.function(*theirs)
    assert (baseline.sparse_attention(ours) - expected).norm() < 1e-4 * expected.norm()
    for name in ("kv_cache", "kr_cache", "index_k_cache"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=1e-4, atol=1e-5)


def _keys_that_differ(select: Callable[[Tensor, Tensor, Tensor, int], Tensor]) -> int:
    """Select among 8192 bf16 keys for 16 tokens; return in how many the worst row differs."""
    torch.manual_seed(0)
    query = normal(16, V32.index_heads, V32.index_size, dtype=torch.bfloat16)
    key = normal(8192, V32.index_size, dtype=torch.bfloat16)
    weights = normal(16, V32.index_heads, dtype=torch.bfloat16)
    expected = select_in_tensor_dtype(query.double(), key.double(), weights.double(), TOP_K)
    rows = zip(select(query, key, weights, TOP_K).tolist(), expected.tolist(), strict=True)
    return max(len(set(row) - set(right)) for row, right in rows)


def test_eager_baseline_selects_what_the_op_selects() -> None:
    # As many as the published rule allows.
    assert _keys_that_differ(select_in_sequence) <= 1
    assert _keys_that_differ(select_in_tensor_dtype) > 1


@pytest.mark.parametrize(
    ("scale", "attend"), [(PUBLISHED_LATENTS, attend_to_rows), (1, attend_exactly)]
)
def test_eager_baseline_attends_as_well_as_the_op(scale: float, attend: Attend) -> None:
    torch.manual_seed(0)
    query = normal(HEADS, LATENT, dtype=torch.bfloat16)
    query_rope = normal(HEADS, ROPE, dtype=torch.bfloat16)
    kv = normal(TOP_K, LATENT, dtype=torch.bfloat16, scale=scale)
    given = query, query_rope, kv, normal(TOP_K, ROPE, dtype=torch.bfloat16)
    out = attend(*given, (LATENT + ROPE) ** -0.5).double()
    expected = attend_to_rows(*(value.double() for value in given), (LATENT + ROPE) ** -0.5)
    assert torch.isclose(out, expected, rtol=0.03, atol=1e-4).double().mean() >= 0.999
    assert (out - expected).norm() <= 5e-3 * expected.norm()


def test_folded_heads_attend_as_transformers_eager() -> None:
    query, keys = torch.randn(2, 8, 1, 16), torch.randn(2, 1, 40, 16)
    mask = torch.zeros(2, 1, 1, 40).masked_fill_(torch.arange(40) < 7, -torch.inf)
    module = SimpleNamespace(sinks=torch.randn(8), num_key_value_groups=8, training=False)
    expected, _ = modeling_deepseek_v4.eager_attention_forward(
        module, query, keys, keys, mask, scaling=0.3
    )
    torch.testing.assert_close(fold(module, query, keys, keys, mask, scaling=0.3)[0], expected)


def test_run_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = next(cpu.all_cases())
    monkeypatch.setattr(cpu, "all_cases", lambda: [small])
    output = tmp_path / "out" / "run.jsonl"
    cpu.main(["--quick", "--no-compile", "--output", str(output)])
    _, row = map(json.loads, output.read_text().splitlines())
    assert row["op"] == "add_custom"
    assert row["times"]["ours"][1] > 0
    # Its peak is not known.
    assert row["at_peak"] is None
    assert "  add_custom [16] float32\n" in capsys.readouterr().out
