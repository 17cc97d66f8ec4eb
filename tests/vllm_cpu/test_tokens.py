"""Greedy tokens are the choice of transformers' own full forward."""

import os
from pathlib import Path
from typing import Any

import pytest
from checkpoints import EqualByPosition, load_reference, make_checkpoint, prompts
from engine import as_prompt, engine, generate, sampling
from tiny_models import TOPK, YARN

from examples.vllm_serve.checkpoint import GAP, full_forward_gap

BLOCK = 16
# Contexts around the top-k, the edges of blocks, and far above both.
LENGTHS = (1, TOPK - 1, TOPK, TOPK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 130, 300)


def assert_right(reference: Any, batch: list[list[int]], tokens: list[list[int]]) -> None:
    gaps = [full_forward_gap(reference, *each) for each in zip(batch, tokens, strict=True)]
    assert max(gaps) < GAP, gaps


def test_batched_and_one_at_a_time(model: Any) -> None:
    """Prompts of a batch end their prefill at different steps, so decodes are mixed in."""
    batch = prompts(*LENGTHS)
    with engine(model.folder, block_size=BLOCK) as llm:
        together = generate(llm, batch)
        alone = [generate(llm, [each])[0] for each in prompts(*LENGTHS[-3:], seed=1)]
    assert_right(model.reference, batch, together)
    assert_right(model.reference, prompts(*LENGTHS[-3:], seed=1), alone)


def test_chunked_prefill_and_hits_of_the_prefix_cache(model: Any) -> None:
    long = prompts(300)[0]
    batch = [long, long[:280] + prompts(50, seed=2)[0], long]
    options = {"enable_prefix_caching": True, "max_num_batched_tokens": 64, "block_size": BLOCK}
    with engine(model.folder, **options) as llm:
        tokens = [generate(llm, [each])[0] for each in batch]
        hit = llm.generate([as_prompt(long)], sampling(1), use_tqdm=False)[0]
    # Blocks of DeepSeek-V4 have 256 tokens.
    assert hit.num_cached_tokens >= (
        256 if hasattr(model.reference.config, "hc_mult") else 300 - BLOCK
    )
    assert_right(model.reference, batch, tokens)


# Each has what the models above lack.
YARN_OF_256 = {"rope_parameters": {**YARN, "factor": 4.0}, "max_position_embeddings": 256}
SHARED = {"num_hidden_layers": 4, "indexer_types": ["full", "full", "shared", "full"]}
VARIANTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "YaRN": ("DeepseekV32", {}, YARN_OF_256),
    "shared indexers": ("GlmMoeDsa", {"index_topk_freq": 2}, SHARED),
    # With few heads, relu makes the scores of many keys zero. Equal ones are taken by position.
    "equal index scores": ("DeepseekV32", {}, {"index_n_heads": 4}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant(variant: str, tmp_path: Path) -> None:
    family, fields, changes = VARIANTS[variant]
    make_checkpoint(tmp_path, family, fields, **changes)
    batch = prompts(5, 40, 130, 200)
    with engine(tmp_path, max_model_len=256) as llm:
        tokens = generate(llm, batch, 40)
    with EqualByPosition():
        assert_right(load_reference(tmp_path), batch, tokens)


# One or two families each, for their time.
@pytest.mark.parametrize("model", ["GlmMoeDsa", "DeepseekV4"], indirect=True)
def test_compiled(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled graph may order what it does not know to depend on each other."""
    # For these models vLLM prefers another kind of graphs to compiling, which a CPU has not.
    monkeypatch.setenv("VLLM_USE_BREAKABLE_CUDAGRAPH", "0")
    batch = prompts(5, TOPK, 130)
    with engine(model.folder, enforce_eager=False) as llm:
        mode = llm.llm_engine.vllm_config.compilation_config.mode.name
        tokens = generate(llm, batch)
    assert mode == "DYNAMO_TRACE_ONCE"
    assert_right(model.reference, batch, tokens)


@pytest.mark.parametrize("model", ["DeepseekV32", "DeepseekV4"], indirect=True)
def test_two_processes_of_tensor_parallel(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{first}|{second}")
    batch = prompts(5, TOPK, 130)
    with engine(model.folder, tensor_parallel_size=2) as llm:
        tokens = generate(llm, batch)
    assert_right(model.reference, batch, tokens)


@pytest.mark.parametrize("model", ["GlmMoeDsa"], indirect=True)
def test_linear_layers_on_our_op(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are where a CPU has no product of 16 bits; with 32 tokens are equal."""
    from custom_pypto_vllm import linear_products

    served = []
    monkeypatch.setattr(linear_products, "_is_served", lambda weight: served.append(1) or True)
    batch = prompts(5, TOPK, 130)
    with engine(model.folder) as llm:
        tokens = generate(llm, batch)
    assert served
    assert_right(model.reference, batch, tokens)
