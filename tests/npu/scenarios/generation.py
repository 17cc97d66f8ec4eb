"""Tiny models of transformers that generate on an NPU, through custom_pypto_transformers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from custom_pypto_transformers import GrowingCache
from custom_pypto_transformers.growing_cache import CACHE
from custom_pypto_transformers.rows import Compressed, attend_to_rows
from custom_pypto_transformers.support import refusal_of
from transformers import AutoModelForCausalLM, DeepseekV32Config, GlmMoeDsaConfig

CONFIGS = {"deepseek_v32": DeepseekV32Config, "glm_moe_dsa": GlmMoeDsaConfig}
VOCABULARY = 64
# CANN's own kernels take these sizes of the attention.
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    **dict.fromkeys(("hidden_size", "intermediate_size", "qk_rope_head_dim", "index_n_heads"), 64),
    # No experts, which would need operators that are not simulated.
    **dict.fromkeys(("num_hidden_layers", "first_k_dense_replace"), 2),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 8),
    "q_lora_rank": 96,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 32,
    "v_head_dim": 24,
    "index_topk": 16,
    "index_head_dim": 128,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "pad_token_id": 2,
    "eos_token_id": None,
}
CACHES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "dynamic": lambda _: {},
    "growing": lambda config: {CACHE: GrowingCache(config)},
    "static": lambda _: {"cache_implementation": "static", "disable_compile": True},
}


def generates_the_tokens_of_the_cpu(family: str) -> None:
    """Greedy tokens and logits on NPU against CPU: each cache, with and without padding."""
    torch.manual_seed(0)
    config = CONFIGS[family](**SIZES)
    model = AutoModelForCausalLM.from_config(
        config, dtype=torch.float16, attn_implementation="custom_pypto"
    ).eval()
    generate = partial(model.generate, max_new_tokens=6, do_sample=False)
    tokens = torch.randint(3, VOCABULARY, (2, 40))
    padded = (torch.arange(40) >= torch.tensor([[0], [17]])).long()
    with torch.inference_mode():
        for mask in (torch.ones_like(tokens), padded):
            real = mask.bool()
            model.cpu()
            expected = generate(tokens, attention_mask=mask)
            logits = model(tokens, attention_mask=mask).logits
            model.npu()
            on_npu = tokens.to("npu")
            for name, cache in CACHES.items():
                found = generate(on_npu, attention_mask=mask.to("npu"), **cache(config))
                assert found.cpu().equal(expected), (family, name)
            found = model(on_npu, attention_mask=mask.to("npu")).logits.cpu()
            errors = (found[real] - logits[real]).abs().amax(-1)
            # Two scores at the edge of the top-k can be nearly equal. Then the product for the
            # queries, which differs between processors, decides which key a token attends to.
            assert (errors > 0.03).sum() <= 1, (family, errors)


def refusals_of_sizes() -> list[str | None]:
    """Why sizes that CANN's own kernels take, and others, are not served on an NPU."""
    device, dtype = torch.device("npu", 0), torch.float16
    return [
        refusal_of("attention", device, dtype, 8, 512, 64, False),
        refusal_of("attention", device, dtype, 8, 64, 64, False),
        refusal_of("indexer", device, dtype, 64, 128, 16),
        refusal_of("indexer", device, dtype, 64, 32, 16),
        # The layers of DeepSeek-V4, and of GLM-5.3.
        refusal_of("rows", device, dtype, 64, 512, 128),
        refusal_of("rows", device, dtype, 64, 512, 128, 4, 512),
        refusal_of("rows", device, dtype, 64, 512, 128, 128),
        refusal_of("rows", device, dtype, 64, 512),
        refusal_of("rows", device, dtype, 64, 512, 64),
    ]


def rows_have_the_attention_of_the_cpu() -> None:
    """The layers of DeepSeek-V4 and GLM-5.3: two sequences that end at other tokens."""
    torch.manual_seed(0)
    tokens, dtype = 3, torch.float16
    query, near = torch.randn(2, tokens, 8, 512, dtype=dtype), torch.randn(2, 200, 512, dtype=dtype)
    rows, sinks = torch.randn(2, 60, 512, dtype=dtype), torch.randn(8)
    lengths = torch.tensor([200, 180])
    picked = torch.randint(-1, 40, (2, tokens, 9), dtype=torch.int32)
    cases: list[dict[str, Any]] = [
        {"window": 128, "sinks": sinks},
        {"window": 128, "sinks": sinks, "compressed": Compressed(rows, 4, lengths, picked)},
        {"window": 128, "sinks": sinks, "compressed": Compressed(rows[:, :1], 128, lengths, None)},
        {"indices": picked},
    ]
    for options in cases:
        wanted = attend_to_rows(query, near, 0.05, want_lse=True, **options)
        given = {name: _on_npu(value) for name, value in options.items()}
        found = attend_to_rows(_on_npu(query), _on_npu(near), 0.05, want_lse=True, **given)
        for mine, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine.cpu(), theirs, rtol=5e-3, atol=5e-3)


def _on_npu(value: Any) -> Any:
    if isinstance(value, Compressed):
        return Compressed(*map(_on_npu, value))
    return value.to("npu") if isinstance(value, torch.Tensor) else value
