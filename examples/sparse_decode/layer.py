"""One DeepSeek sparse attention layer: its sizes, seeded weights, and hidden states of a text."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from custom_pypto_sparse_attention import samples
from torch import Tensor
from torch.nn import functional

ATTENTION_GAIN = 1.2
"""How sharp the softmax is; chosen so that a head attends to some tens of positions."""
LATENT_SCALE = 0.1
"""Scale of the cached latents and so of the output: that of the published data, for which the
tolerance (atol 1e-4) holds."""
WINDOW = 8
"""How many of the last tokens a hidden state represents individually."""
DECAY = 0.85
"""The weight of each token relative to the next one."""
TOPIC_WINDOW = 512
"""How many of the last tokens the topic is averaged over."""
HISTORY = TOPIC_WINDOW + 2
"""How many tokens before a token its hidden state depends on."""
TOPIC_BUCKETS = 256
TOPIC_WEIGHT = 0.8
HASH_FACTORS = (7919, 104729, 1299709)
HASH_PRIME = 65521
RMS = 0.577
"""Root mean square of a hidden state: that of U(-1, 1), the data that the op is published with."""


@dataclass(frozen=True)
class Sizes(samples.Sizes):
    """Sizes of one attention layer and of the batch that it decodes.

    `lengths` has the length of each sequence at the first step, the decoded token included.
    """

    name: str = "small"
    steps: int = 24


SMALL = Sizes(
    lengths=(768, 2304, 4097, 8191),
    hidden=1024,
    query_rank=384,
    heads=16,
    nope=64,
    latent=256,
    rope=64,
    index_heads=16,
    index_size=128,
    block_size=128,
)
DEEPSEEK = replace(
    Sizes(**vars(samples.DEEPSEEK_V32)), name="DeepSeek-V3.2", lengths=(768, 4097, 8192, 131071)
)
SIZES = {"deepseek": DEEPSEEK, "small": SMALL}


def make_weights(sizes: Sizes, generator: torch.Generator) -> dict[str, Tensor]:
    """Draw random weights with which the layer attends to places similar to the present one.

    They are bf16, by their names in the schema of npu_sparse_attention_pto.

    With independent projections every score would be noise. Training aligns queries with keys; here
    both are projections of one random view of the hidden state (w_dq), so that a score grows with
    the similarity of two hidden states, and each head compares a random subspace.
    """

    def normal(*shape: int, std: float = 1.0) -> Tensor:
        return torch.randn(*shape, generator=generator) * std

    s = sizes
    w_dq = normal(s.hidden, s.query_rank, std=s.hidden**-0.5)
    unit = s.query_rank**-0.5

    latent_view = normal(s.query_rank, s.latent, std=unit)
    rope_view = normal(s.query_rank, s.rope, std=unit)
    head_view = normal(s.heads, s.latent, s.nope, std=s.latent**-0.5)
    nope_query = torch.einsum("ql,nld->qnd", latent_view, head_view)
    nope_query *= ATTENTION_GAIN / LATENT_SCALE
    rope_gain = ATTENTION_GAIN * (1 + 0.5 * normal(1, s.heads, s.rope))
    rope_query = rope_view.unsqueeze(1) * rope_gain
    w_uq_qr = torch.cat((nope_query, rope_query), -1).flatten(1)

    index_view = normal(s.query_rank, s.index_size, std=unit)
    index_gain = 1 + 0.5 * normal(1, s.index_heads, s.index_size)
    w_idx_proj = normal(s.hidden, s.index_heads, std=0.25 * s.hidden**-0.5)
    w_idx_proj[0] += 1.0

    tensors = {
        "w_dq": w_dq,
        "w_uq_qr": w_uq_qr,
        "w_uk": head_view.transpose(1, 2),
        "w_dkv_kr": w_dq @ torch.cat((latent_view, rope_view), -1) * 3**0.5,
        "gamma_cq": 1 + 0.1 * normal(s.query_rank),
        "gamma_ckv": LATENT_SCALE * (1 + 0.1 * normal(s.latent)),
        "w_idx_qb": (index_view.unsqueeze(1) * index_gain).flatten(1),
        "w_idx_k": w_dq @ index_view,
        "w_idx_proj": w_idx_proj,
        "in_gamma_k": 1 + 0.1 * normal(s.index_size),
        "in_beta_k": 0.1 * normal(s.index_size),
    }
    return {name: t.bfloat16().contiguous() for name, t in tensors.items()}


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
        self._topics = torch.randn(TOPIC_BUCKETS, hidden, generator=generator) * TOPIC_WEIGHT

    def __call__(self, tokens: Tensor) -> Tensor:
        """Return the bf16 states [t - HISTORY, H] of int64 tokens [t], whose first are history."""
        local = self._local(tokens[HISTORY - WINDOW + 1 :])
        states = torch.addmm(local, self._topic_histogram(tokens), self._topics)
        norm = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
        states *= RMS * states.shape[-1] ** 0.5 / norm
        states[:, 0] = 1.0
        return states.bfloat16()

    def _local(self, tokens: Tensor) -> Tensor:
        rows = tokens.unfold(0, WINDOW, 1).flip(-1) + torch.arange(WINDOW) * 256
        return functional.embedding_bag(rows, self._tables, mode="sum")

    def _topic_histogram(self, tokens: Tensor) -> Tensor:
        """Return unit vectors [t - HISTORY, TOPIC_BUCKETS] of the last TOPIC_WINDOW groups."""
        groups = tokens.unfold(0, 3, 1)
        buckets = (groups * torch.tensor(HASH_FACTORS)).sum(-1) % HASH_PRIME % TOPIC_BUCKETS
        counts = functional.one_hot(buckets, TOPIC_BUCKETS).int().cumsum(0)
        histogram = (counts[TOPIC_WINDOW:] - counts[:-TOPIC_WINDOW]).float().sqrt()
        histogram -= histogram.mean(-1, keepdim=True)
        return functional.normalize(histogram, dim=-1)
