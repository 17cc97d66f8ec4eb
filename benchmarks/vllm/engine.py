"""vLLM's engine in a process of its own, whose steps are timed one by one, and its checkpoints.

`start` makes the engine of a process, on which the functions behind it work. Checkpoints have no
weights: vLLM draws seeded ones.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import timeit
from pathlib import Path
from typing import Any

import torch
from custom_pypto_sparse_attention.ops import TOP_K
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from torch.autograd.profiler import profile

_OPS = ("custom_pypto::npu_lightning_indexer_pto", "custom_pypto::npu_sparse_flash_attention")

# More tokens than timed steps, so that no request ends early.
_NEW_TOKENS = 64

LAYERS = 2

# The released sizes, but a small vocabulary: a step is that of its layers. transformers' config has
# the same defaults. As in the first layers of the released model, no layer has experts.
_CONFIG: dict[str, Any] = {
    "torch_dtype": "bfloat16",
    "vocab_size": 1024,
    "hidden_size": V32.hidden,
    "intermediate_size": 18432,
    "num_hidden_layers": LAYERS,
    "first_k_dense_replace": LAYERS,
    "num_attention_heads": V32.heads,
    "num_key_value_heads": V32.heads,
    "q_lora_rank": V32.query_rank,
    "kv_lora_rank": V32.latent,
    "qk_nope_head_dim": V32.nope,
    "qk_rope_head_dim": V32.rope,
    "v_head_dim": 128,
    "max_position_embeddings": 163840,
    "rope_theta": 10000,
    "rope_scaling": {
        "type": "yarn",
        "factor": 40,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}
_DENSE = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"}
_SPARSE = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "index_n_heads": V32.index_heads,
    "index_head_dim": V32.index_size,
    "index_topk": TOP_K,
}
# For tests: every part runs, in milliseconds. vLLM's reference MLA takes no other latents.
_TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
}


_llm: Any = None
_numbers = itertools.count()


def start(checkpoint: Path, caches: int, longest: int, requests: int) -> None:
    """Start an engine, once, for requests of at most `longest` tokens, with bytes of `caches`."""
    global _llm
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(math.ceil(caches / 2**30))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    from vllm import LLM

    _llm = LLM(
        str(checkpoint),
        load_format="dummy",
        dtype="bfloat16",
        enforce_eager=True,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        max_model_len=longest + _NEW_TOKENS,
        max_num_seqs=requests,
        max_num_batched_tokens=2048,
        disable_log_stats=True,
    )
    layers = _llm.llm_engine.vllm_config.compilation_config.static_forward_context
    for layer in layers.values():
        layer.kv_cache.normal_()


def _requests() -> dict[str, Any]:
    found: dict[str, Any] = _llm.llm_engine.engine_core.engine_core.scheduler.requests
    return found


def decode(requests: int, context: int) -> None:
    """Begin to decode: each request has a cache of random values."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    sampling = SamplingParams(
        temperature=0, max_tokens=_NEW_TOKENS, ignore_eos=True, detokenize=False
    )
    for number in itertools.islice(_numbers, requests):
        generator = torch.Generator().manual_seed(number)
        prompt = torch.randint(3, 1000, (context,), generator=generator).tolist()
        _llm.llm_engine.add_request(str(number), TokensPrompt(prompt_token_ids=prompt), sampling)
    for request in _requests().values():
        # As if the cache had been received: the scheduler gives it blocks, and computes the rest.
        request.num_computed_tokens = context - 1


def step() -> None:
    """Give each request a token."""
    _llm.llm_engine.step()


def share_of_ops(steps: int) -> float:
    """Return the share of a step's time that the two ops take, by torch's profiler."""
    # Kineto, its newer backend, prints at every start and stop.
    with profile(use_kineto=False) as profiler:
        whole = timeit.timeit(_llm.llm_engine.step, number=steps)
    inside = sum(e.cpu_time_total for e in profiler.key_averages() if e.key in _OPS)
    return float(inside) * 1e-6 / whole


def abort() -> None:
    """End all requests."""
    _llm.llm_engine.abort_request(list(_requests()), internal=True)
    while _llm.llm_engine.has_unfinished_requests():
        _llm.llm_engine.step()


def write(folder: Path, *, is_sparse: bool, is_tiny: bool) -> None:
    """Write the config of a model with sparse attention, or with the dense one of V3."""
    config = _CONFIG | (_SPARSE if is_sparse else _DENSE) | (_TINY if is_tiny else {})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def cache_bytes(requests: int, tokens: int, *, is_sparse: bool) -> int:
    """Return the size of the caches of all layers."""
    row = V32.latent + V32.rope + (V32.index_size if is_sparse else 0)
    # What requests add while they are timed takes a block or two each.
    return requests * (tokens + 256) * LAYERS * row * 2
