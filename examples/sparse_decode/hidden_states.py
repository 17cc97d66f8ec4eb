"""Hidden states of a text, in place of a model's lower layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

WINDOW = 8
"""How many of the last tokens a hidden state represents individually."""

DECAY = 0.85
"""The weight of each token relative to the next one."""

TOPIC_WINDOW = 512
"""How many of the last tokens the topic is averaged over."""

TOPIC_BUCKETS = 256
TOPIC_WEIGHT = 0.8
HASH_FACTORS = (7919, 104729, 1299709)
HASH_PRIME = 65521

RMS = 0.577
"""Root mean square of a hidden state: that of U(-1, 1), the data that the op is published with."""


class HiddenStates:
    """Turns the tokens of one text into hidden states [t, H], deterministically.

    The state of a token is the sum of three parts, as in a trained model's residual stream:
    the last WINDOW tokens (so that places where the text says the same thing look alike), the
    topic, which is a histogram of the hashed three-token groups of the last TOPIC_WINDOW tokens
    (so that places about the same thing look alike), and a constant in channel 0. A state depends
    on no token after it.
    """

    def __init__(self, hidden: int, generator: torch.Generator) -> None:
        scale = DECAY ** torch.arange(WINDOW).repeat_interleave(256).unsqueeze(1)
        tables = torch.randn(WINDOW * 256, hidden, generator=generator) * scale
        # fp32: where the CPU has no bf16 instructions, torch's bf16 products are 50 times slower.
        self._tables = tables / (scale[::256].square().sum().sqrt())
        topics = torch.randn(TOPIC_BUCKETS, hidden, generator=generator)
        self._topics = topics * TOPIC_WEIGHT

    @property
    def history(self) -> int:
        """How many tokens before a token its hidden state depends on."""
        return TOPIC_WINDOW + 2

    def __call__(self, tokens: Tensor) -> Tensor:
        """Return the bf16 states [t - history, H] of int64 tokens [t], whose first are history."""
        local = self._local(tokens[self.history - WINDOW + 1 :])
        states = torch.addmm(local, self._topic_histogram(tokens), self._topics)
        norm = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
        states *= RMS * states.shape[-1] ** 0.5 / norm
        states[:, 0] = 1.0
        return states.bfloat16()

    def _local(self, tokens: Tensor) -> Tensor:
        windows = tokens.unfold(0, WINDOW, 1).flip(-1)
        rows = windows + torch.arange(WINDOW) * 256
        return functional.embedding_bag(rows, self._tables, mode="sum")

    def _topic_histogram(self, tokens: Tensor) -> Tensor:
        """Return unit vectors [t - history, TOPIC_BUCKETS] of the last TOPIC_WINDOW groups."""
        groups = tokens.unfold(0, 3, 1)
        buckets = (groups * torch.tensor(HASH_FACTORS)).sum(-1) % HASH_PRIME % TOPIC_BUCKETS
        counts = functional.one_hot(buckets, TOPIC_BUCKETS).int().cumsum(0)
        histogram = (counts[TOPIC_WINDOW:] - counts[:-TOPIC_WINDOW]).float().sqrt()
        histogram -= histogram.mean(-1, keepdim=True)
        return functional.normalize(histogram, dim=-1)
