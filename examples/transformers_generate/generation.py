"""Generates from one prompt with each attention implementation of a small DeepSeek-V3.2."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from custom_pypto_transformers.growing_cache import CACHE
from torch import Tensor
from transformers import DynamicCache
from transformers.generation.streamers import BaseStreamer

from examples.transformers_model import build

OURS = "custom_pypto"
IMPLEMENTATIONS = ("eager", "sdpa", OURS)

OWN_PROMPT = 1024
"""Up to this length each implementation prefills itself. For eager and sdpa the cost grows with the
square of the length, so longer prompts are prefilled by custom_pypto alone."""

CHUNK = 1024
"""Tokens of a prefill chunk."""

SIZES = {
    "vocab_size": 512,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": 192,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    # With few heads, many scores are exactly zero: which of these keys are selected is arbitrary.
    "index_n_heads": 64,
    "index_head_dim": 32,
    "index_topk": 256,
}


def make_model(seed: int) -> Any:
    """Return a model in fp32, so that the order of additions changes no token."""
    # With an initializer_range larger than usual attention matters.
    options = {"initializer_range": 0.1, "pad_token_id": 0}
    return build("deepseek_v32", SIZES, seed, torch.float32, "eager", **options).eval()


def make_prompt(length: int, seed: int) -> Tensor:
    """Return random tokens [1, length]; a longer prompt begins with a shorter one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, SIZES["vocab_size"], (1, length), generator=generator)


@dataclass(frozen=True)
class Generated:
    """The tokens of one implementation after one prompt, and their time."""

    context: int
    implementation: str
    tokens: tuple[int, ...]
    seconds: float
    """Median time from one token to the next."""


class Clock(BaseStreamer):  # type: ignore[misc]
    """Records when `generate` has the prompt, and each token."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def put(self, _tokens: Tensor) -> None:
        """Receive the prompt, then one token at a time."""
        self._times.append(time.perf_counter())

    def end(self) -> None:
        """Do nothing at the end of the stream."""

    @property
    def seconds(self) -> float:
        """Median time from one token to the next."""
        _, *times = self._times
        return median(end - begin for begin, end in itertools.pairwise(times))


@torch.inference_mode()
def generate(model: Any, prompt: Tensor, contexts: list[int], tokens: int) -> Iterator[Generated]:
    """Yield what each implementation generates greedily after the first tokens of a prompt.

    Args:
        prompt: [1, T], at least as long as the longest context.
        contexts: how many tokens of it, in rising order.
        tokens: how many to generate, at least 2.
    """
    long = DynamicCache(config=model.config)
    for context in contexts:
        prefilled_by_ours = context > OWN_PROMPT
        if prefilled_by_ours:
            _prefill(model, OURS, prompt[:, : context - 1], long)
        for implementation in IMPLEMENTATIONS:
            cache = copy.deepcopy(long) if prefilled_by_ours else DynamicCache(config=model.config)
            _prefill(model, implementation, prompt[:, : context - 1], cache)
            clock = Clock()
            out = model.generate(
                prompt[:, :context],
                **{CACHE: cache},
                max_new_tokens=tokens,
                do_sample=False,
                streamer=clock,
            )
            yield Generated(
                context, implementation, tuple(out[0, context:].tolist()), clock.seconds
            )


def _prefill(model: Any, implementation: str, prompt: Tensor, cache: DynamicCache) -> None:
    """Prefill the part of a prompt that the cache does not hold."""
    model.set_attn_implementation(implementation)
    for begin in range(cache.get_seq_length(), prompt.shape[1], CHUNK):
        model(prompt[:, begin : begin + CHUNK], None, None, cache, logits_to_keep=1)
