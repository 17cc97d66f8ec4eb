"""The attention of transformers' DeepSeek-V4 and GLM-5.3 by the op, in fp32: the same logits."""

from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  the ops
import pytest
import torch
from torch import Tensor, nn

deepseek = pytest.importorskip("transformers.models.deepseek_v4.modeling_deepseek_v4")
glm = pytest.importorskip("transformers.models.glm5_next.modeling_glm5_next")
attention = torch.ops.custom_pypto.npu_sparse_flash_mla


def _listed(mask: Tensor) -> Tensor:
    """The rows that a mask [B, S, rows] shows, with -1 behind them: [B, S, 1, K]."""
    places = torch.arange(mask.shape[-1]).expand(mask.shape).masked_fill(~mask, -1)
    return places.sort(-1, descending=True).values.int()[:, :, None].contiguous()


def _by_op(module: nn.Module, q: Tensor, k: Tensor, _v: Tensor, mask: Any, **options: Any) -> Any:
    """eager_attention_forward of DeepSeek-V4, for a call that has the whole sequence."""
    tokens = q.shape[2]
    given: dict[str, Any] = {"ori_kv": k[:, :, :tokens].transpose(1, 2)}
    if module.compressor is not None:
        ratio = module.compressor.compress_rate
        given["cmp_kv"] = k[:, :, tokens:].transpose(1, 2)
        given["cmp_ratio"] = ratio
        given["cmp_residual_kv"] = torch.full((len(q),), tokens % ratio, dtype=torch.int32)
        if module.layer_type == "compressed_sparse_attention":
            given["cmp_sparse_indices"] = _listed(mask[:, 0, :, tokens:] == 0)
    out, _ = attention(
        q.transpose(1, 2).contiguous(),
        **{
            name: each.contiguous() if name.endswith("kv") else each for name, each in given.items()
        },
        sinks=module.sinks.detach(),
        softmax_scale=options["scaling"],
        ori_win_left=module.sliding_window - 1,
    )
    return out, None


@pytest.mark.parametrize("tokens", [3, 30, 77])
def test_deepseek_v4(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    config = deepseek.DeepseekV4Config(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        head_dim=32,
        q_lora_rank=32,
        o_groups=2,
        o_lora_rank=16,
        index_n_heads=2,
        index_head_dim=32,
        index_topk=4,
        sliding_window=8,
        moe_intermediate_size=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        layer_types=[
            "sliding_attention",
            "compressed_sparse_attention",
            "heavily_compressed_attention",
        ],
        compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
        mlp_layer_types=["moe"] * 3,
    )
    torch.manual_seed(0)
    model = deepseek.DeepseekV4ForCausalLM._from_config(config, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        if name.endswith("sinks"):
            nn.init.normal_(parameter)
    _assert_equal(
        model, tokens, lambda: monkeypatch.setattr(deepseek, "eager_attention_forward", _by_op)
    )


def test_glm5_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heads' key parts are absorbed into the queries; the latents are keys and values."""
    text = {
        "vocab_size": 500,
        "hidden_size": 128,
        "intermediate_size": 128,
        "moe_intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "kv_lora_rank": 64,
        "q_lora_rank": 48,
        "v_head_dim": 32,
        "qk_nope_head_dim": 32,
        "index_topk": 32,
        "index_head_dim": 32,
        "index_n_heads": 4,
        "linear_head_dim": 32,
        "linear_num_heads": 4,
        "index_kpool": 4,
        "layer_types": ["linear_attention", "indexed_attention"] * 2,
        "mlp_layer_types": ["dense"] * 4,
        "indexer_types": ["full"] * 4,
        "pad_token_id": 0,
    }
    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32}
    config = glm.Glm5NextConfig(text_config=text, vision_config=vision | {"out_hidden_size": 128})
    torch.manual_seed(0)
    cls = glm.Glm5NextForConditionalGeneration
    model = cls._from_config(config, attn_implementation="eager").eval()
    kept: dict[str, Tensor] = {}
    layer = glm.Glm5NextTextAttention
    expand, build = layer.expand_kv, layer.build_attention_mask_from_topk

    def keep_latents(self: Any, latents: Tensor, k_rot: Tensor) -> Any:
        kept["latents"] = latents
        return expand(self, latents, k_rot)

    def keep_indices(self: Any, topk_indices: Tensor, *args: Any, **kwargs: Any) -> Any:
        kept["indices"] = topk_indices
        return build(self, topk_indices, *args, **kwargs)

    def by_op(module: Any, q: Tensor, _k: Tensor, _v: Tensor, _mask: Any, **options: Any) -> Any:
        heads, nope = module.num_heads, module.qk_nope_head_dim
        weights = module.kv_b_proj.weight.view(heads, -1, module.kv_lora_rank)
        absorbed = torch.einsum("bnsp,npl->bsnl", q, weights[:, :nope])
        out, _ = attention(
            absorbed.contiguous(),
            ori_kv=kept["latents"].transpose(1, 2).contiguous(),
            ori_sparse_indices=kept["indices"].int()[:, :, None].contiguous(),
            softmax_scale=options["scaling"],
            ori_mask_mode=0,
        )
        return torch.einsum("bsnl,nvl->bsnv", out, weights[:, nope:]), None

    def use_op() -> None:
        monkeypatch.setattr(layer, "expand_kv", keep_latents)
        monkeypatch.setattr(layer, "build_attention_mask_from_topk", keep_indices)
        monkeypatch.setattr(glm, "eager_attention_forward", by_op)

    _assert_equal(model, 100, use_op)


def _assert_equal(model: Any, tokens: int, use_op: Callable[[], None]) -> None:
    ids = torch.randint(3, 90, (2, tokens), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = model(input_ids=ids, use_cache=False).logits
        use_op()
        found = model(input_ids=ids, use_cache=False).logits
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
