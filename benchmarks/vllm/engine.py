"""vLLM's engine in a process of its own, whose steps are timed one by one."""

from __future__ import annotations

import gc
import itertools
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import process_memory
from benchmarks.vllm import parts

# More tokens than timed steps, so that no request ends early.
_NEW_TOKENS = 64


@dataclass(frozen=True)
class Settings:
    """Of an engine: the greatest size of each."""

    checkpoint: Path
    cache_bytes: int
    longest: int
    """Tokens of a request."""
    requests: int
    batched_tokens: int
    """Tokens of a step."""


class Engine:
    """Calls an engine in another process. It waits between calls, and takes no time then."""

    def __init__(self, settings: Settings) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._process = ProcessPoolExecutor(1, spawned, _start, (settings,))

    def decode(self, requests: int, context: int) -> None:
        """Begin to decode: each request has a cache of random values."""
        self._call(_decode, requests, context)

    def step(self) -> None:
        """Give each request a token."""
        self._call(_step)

    def parts(self, steps: int) -> dict[str, float]:
        """Return the seconds of a step by part."""
        found: dict[str, float] = self._call(_parts, steps)
        return found

    def abort(self) -> None:
        """End all requests."""
        self._call(_abort)

    def prefill(self, requests: int, tokens: int) -> tuple[float, int | None]:
        """Read a prompt a request; return seconds, and bytes beside weights and caches."""
        measured: tuple[float, int | None] = self._call(_prefill, requests, tokens)
        return measured

    def stop(self) -> None:
        """End the process."""
        self._process.shutdown()

    def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        return self._process.submit(function, *arguments).result()


# What follows runs in the engine's process.
_llm: Any = None
_names = itertools.count()


def _start(settings: Settings) -> None:
    global _llm
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(math.ceil(settings.cache_bytes / 2**30))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    from vllm import LLM

    _llm = LLM(
        str(settings.checkpoint),
        load_format="dummy",
        dtype="bfloat16",
        enforce_eager=True,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        max_model_len=settings.longest + _NEW_TOKENS,
        max_num_seqs=settings.requests,
        max_num_batched_tokens=settings.batched_tokens,
        disable_log_stats=True,
    )
    layers = _llm.llm_engine.vllm_config.compilation_config.static_forward_context
    for layer in layers.values():
        layer.kv_cache.normal_()


def _add(tokens: int, new_tokens: int) -> str:
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt

    name = str(next(_names))
    generator = torch.Generator().manual_seed(int(name))
    prompt = torch.randint(3, 1000, (tokens,), generator=generator).tolist()
    sampling = SamplingParams(
        temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False
    )
    _llm.llm_engine.add_request(name, TokensPrompt(prompt_token_ids=prompt), sampling)
    return name


def _requests() -> dict[str, Any]:
    found: dict[str, Any] = _llm.llm_engine.engine_core.engine_core.scheduler.requests
    return found


def _decode(requests: int, context: int) -> None:
    for _ in range(requests):
        _add(context, _NEW_TOKENS)
    for request in _requests().values():
        # As if the cache had been received: the scheduler gives it blocks, and computes the rest.
        request.num_computed_tokens = context - 1


def _step() -> None:
    _llm.llm_engine.step()


def _parts(steps: int) -> dict[str, float]:
    return parts.measure(_llm.llm_engine.step, steps)


def _abort() -> None:
    _llm.llm_engine.abort_request(list(_requests()), internal=True)
    while _llm.llm_engine.has_unfinished_requests():
        _llm.llm_engine.step()


def _prefill(requests: int, tokens: int) -> tuple[float, int | None]:
    for _ in range(requests):
        _add(tokens, 1)

    def read() -> None:
        while _llm.llm_engine.has_unfinished_requests():
            _llm.llm_engine.step()

    gc.collect()
    process_memory.trim_heap()
    start = time.perf_counter()
    grown = process_memory.growth(read)
    return time.perf_counter() - start, grown
