"""Many queries attend to keys that are expanded once, where that takes less time."""

from types import SimpleNamespace
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import attention, expanded_keys
from tiny_models import OpCalls, assert_close, make_model, padding, prompt, real_logits, under
from torch import nn

pytestmark = pytest.mark.usefixtures("no_grad")
OP = "npu_sparse_flash_attention"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("paying", [[0, 1, 2], [1]], ids=str)
def test_results(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, paying: list[int]) -> None:
    weight = nn.Linear(32, 3 * 22, bias=False, dtype=dtype)
    module = SimpleNamespace(qk_nope_head_dim=12, v_head_dim=10, kv_b_proj=weight)
    # Views; two sequences; a last chunk with fewer queries.
    query = torch.randn(2, 600, 3, 16).to(dtype).transpose(1, 2)[:, :, 2:]
    latents, ropes = torch.randn(2, 1, 700, 36).to(dtype).split([32, 4], -1)
    indices = torch.rand(2, 598, 700).topk(40).indices.int()
    indices = indices.where(indices % 3 > 0, -1).index_fill(1, torch.tensor([300]), -1)
    call, results = (module, query, latents, ropes, indices, 0.3, None), []
    # One head at once.
    monkeypatch.setattr(expanded_keys, "_MOST_BYTES", 1)
    for found in (dict.fromkeys(paying, 700), {}):
        monkeypatch.setattr(expanded_keys, "chunks_that_pay", lambda *_, found=found: found)
        results.append(attention._attend_in_chunks(*call))
    assert_close(*(each.float() for each in results), 1e-5 if dtype == torch.float32 else 1e-2)
    assert results[0][:, 300].count_nonzero() == 0
    assert 0 in paying or results[0][:, :256].equal(results[1][:, :256])


@tiny_models.EVERY_FAMILY
def test_models(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    mask = padding(60, (0, 60), (23, 55))
    wanted = under("eager", model, lambda: real_logits(model, mask))
    monkeypatch.setattr(expanded_keys, "_cost", lambda _: (torch.float32, 0.0))
    with OpCalls() as ops:
        assert_close(real_logits(model, mask), wanted)
    assert OP not in dict(ops.calls) or "hy_v4" in model.config.model_type


@pytest.mark.parametrize(("tokens", "trains"), [(60, True), (1, False)])
def test_the_op_stays(monkeypatch: pytest.MonkeyPatch, tokens: int, trains: bool) -> None:
    monkeypatch.setattr(expanded_keys, "_cost", lambda _: (torch.float32, 0.0))
    with OpCalls() as ops, torch.set_grad_enabled(trains):
        make_model("deepseek_v32")(prompt(1, tokens))
    assert OP in dict(ops.calls)


@pytest.mark.parametrize("call", [(0, 8192, 19), (0, 1024, 4), (1024, 256, 0), (0, 31, 0)])
def test_the_cheaper(monkeypatch: pytest.MonkeyPatch, call: tuple[int, int, int]) -> None:
    (before, tokens, paying), sizes = call, {"v_head_dim": 128, "kv_lora_rank": 512}
    monkeypatch.setattr(expanded_keys, "_cost", lambda _: (torch.float32, 1.5))
    module = SimpleNamespace(qk_nope_head_dim=128, qk_rope_head_dim=64, **sizes)
    query, position = torch.empty(1, 1, tokens, 192, device="cpu"), torch.arange(tokens) + before
    chunks = (position[:, None] - torch.arange(2048)).clamp(min=-1)[None].split(256, 1)
    for keys in (before + tokens, 65536):  # as many as a static cache holds
        assert [*expanded_keys.chunks_that_pay(module, query, keys, chunks)] == list(range(paying))
