"""Generating from one prompt by each way to attend."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.generation.streamers import BaseStreamer

OURS = "custom_pypto"
WAYS = ("eager", "sdpa", OURS)

OWN_PROMPT = 1024
"""Up to this length each way reads the prompt itself. What eager and sdpa need for that grows with
the square of the length, so longer ones are read by custom_pypto alone."""

CHUNK = 1024
"""How many tokens of a prompt are read at once."""


@dataclass(frozen=True)
class Generated:
    """What one way generated after one prompt."""

    context: int
    way: str
    tokens: tuple[int, ...]
    seconds: float
    """Median time from one token to the next."""

    @property
    def tokens_per_second(self) -> float:
        """How many tokens come in a second."""
        return 1 / self.seconds

    def differs_at(self, other: Generated) -> int | None:
        """Return the number, from 1, of the first token that differs; None: all are equal."""
        pairs = enumerate(zip(self.tokens, other.tokens, strict=True), start=1)
        return next((number for number, (ours, theirs) in pairs if ours != theirs), None)


class Clock(BaseStreamer):  # type: ignore[misc]
    """Notes when `generate` hands over each token."""

    def __init__(self, on_token: Callable[[], object]) -> None:
        self.times: list[float] = []
        self._on_token = on_token
        self._prompt_came = False

    def put(self, _tokens: Tensor) -> None:
        """Take the prompt, and then one token after the other."""
        if self._prompt_came:
            self.times.append(time.perf_counter())
            self._on_token()
        self._prompt_came = True

    def end(self) -> None:
        """Nothing is left to do."""

    @property
    def seconds(self) -> float:
        """Median time from one token to the next."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return median(end - begin for begin, end in pairs)


@torch.inference_mode()
def generate(
    model: Any, prompt: Tensor, contexts: list[int], tokens: int, on_token: Callable[[], object]
) -> Iterator[Generated]:
    """Yield what each way generates greedily after the first tokens of a prompt.

    Args:
        prompt: [1, T], at least as long as the longest context.
        contexts: how many tokens of it, in rising order.
        tokens: how many to generate, at least 2.
        on_token: called after each.
    """
    long = DynamicCache(config=model.config)
    for context in contexts:
        read_by_ours = context > OWN_PROMPT
        if read_by_ours:
            _read(model, OURS, prompt[:, : context - 1], long)
        for way in WAYS:
            cache = copy.deepcopy(long) if read_by_ours else DynamicCache(config=model.config)
            _read(model, way, prompt[:, : context - 1], cache)
            clock = Clock(on_token)
            out = model.generate(
                prompt[:, :context],
                past_key_values=cache,
                max_new_tokens=tokens,
                do_sample=False,
                streamer=clock,
            )
            yield Generated(context, way, tuple(out[0, context:].tolist()), clock.seconds)


def _read(model: Any, way: str, prompt: Tensor, cache: DynamicCache) -> None:
    """Bring what the cache does not hold of a prompt into it."""
    model.set_attn_implementation(way)
    for begin in range(cache.get_seq_length(), prompt.shape[1], CHUNK):
        model(prompt[:, begin : begin + CHUNK], past_key_values=cache, logits_to_keep=1)
