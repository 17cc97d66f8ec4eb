"""vLLM's engine in this process."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vllm import LLM, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory
from vllm.inputs import TokensPrompt

NEW_TOKENS = 12


@contextmanager
def engine(folder: Path, **options: Any) -> Iterator[Any]:
    """Start an engine, and stop it at the end."""
    defaults: dict[str, Any] = {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 512,
        "max_num_seqs": 8,
        "skip_tokenizer_init": True,
    }
    llm = LLM(str(folder), **{**defaults, **options})
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()
        cleanup_dist_env_and_memory()


def sampling(tokens: int = NEW_TOKENS) -> SamplingParams:
    """Return greedy sampling of so many tokens."""
    return SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)


def as_prompt(tokens: list[int]) -> TokensPrompt:
    """Return a prompt of token ids."""
    return TokensPrompt(prompt_token_ids=tokens)


def generate(llm: Any, prompts: list[list[int]], tokens: int = NEW_TOKENS) -> list[list[int]]:
    """Return the new tokens of a batch of prompts."""
    outputs = llm.generate([as_prompt(each) for each in prompts], sampling(tokens), use_tqdm=False)
    return [list(each.outputs[0].token_ids) for each in outputs]
