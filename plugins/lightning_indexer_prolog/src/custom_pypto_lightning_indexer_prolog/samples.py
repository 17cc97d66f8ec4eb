"""Seeded inputs that no drawn call hits: DeepSeek's sizes, zeros, shared slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor


@dataclass(frozen=True)
class Sizes:
    """Every size of the op."""

    tokens: int = 3
    hidden: int = 64
    query_rank: int = 48
    heads: int = 8
    size: int = 16
    rope: int = 8
    blocks: int = 5
    block_size: int = 16
    epsilon: float = 1e-6


SMALL = Sizes()
ODD = Sizes(
    tokens=7,
    hidden=37,
    query_rank=21,
    heads=3,
    size=11,
    rope=6,
    blocks=4,
    block_size=5,
    epsilon=0.5,
)
WIDE = Sizes(tokens=33, hidden=160, query_rank=96, heads=16, size=64, rope=32)
DEEPSEEK = Sizes(
    tokens=3,
    hidden=7168,
    query_rank=1536,
    heads=64,
    size=128,
    rope=64,
    blocks=4,
    block_size=128,
    # About half of a key's variance: an epsilon that is lost shows.
    epsilon=400.0,
)
"""The sizes that the kernel of an opp package takes."""
FEW_HEADS = replace(DEEPSEEK, tokens=5, hidden=256, query_rank=128, heads=16, epsilon=10.0)

CASES = {
    "small": SMALL,
    "odd": ODD,
    "wide": WIDE,
    "few-heads": FEW_HEADS,
    "one-token": replace(FEW_HEADS, tokens=1),
    "deepseek": DEEPSEEK,
}
RESIZED = {
    "wide": replace(WIDE, tokens=18, blocks=7),
    "deepseek": replace(DEEPSEEK, tokens=2, blocks=5),
}
"""Cases with other numbers of tokens and blocks, by the name of the original."""


def arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> dict[str, Tensor | float]:
    """The op's arguments by name, the same for the same seed on every device."""
    generator = torch.Generator().manual_seed(seed)
    s = sizes

    def uniform(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return (torch.rand(shape, generator=generator, device="cpu") * 2 - 1).to(dtype).to(device)

    def int8(*shape: int) -> Tensor:
        values = torch.randint(-128, 128, shape, generator=generator, device="cpu")
        return values.to(torch.int8).to(device)

    def norm(mean: float) -> Tensor:
        values = torch.randn(s.size, generator=generator, device="cpu") * 0.1 + mean
        return values.bfloat16().to(device)

    angles = torch.rand(s.tokens, s.rope, generator=generator, device="cpu") * 6.28
    slots = torch.randperm(s.blocks * s.block_size, generator=generator, device="cpu")[: s.tokens]
    scales = {
        "q_norm_scale": uniform(s.tokens, 1, dtype=torch.float32) * 0.01,
        "wq_b_scale": uniform(s.heads * s.size, 1, dtype=torch.float32) * 0.01,
    }
    return {
        "token_x": uniform(s.tokens, s.hidden),
        "q_norm": int8(s.tokens, s.query_rank),
        "q_norm_scale": scales["q_norm_scale"],
        "wq_b": int8(s.query_rank, s.heads * s.size),
        "wq_b_scale": scales["wq_b_scale"],
        "wk": uniform(s.hidden, s.size),
        "weights_proj": uniform(s.hidden, s.heads),
        "ln_gamma_k": norm(1.0),
        "ln_beta_k": norm(0.0),
        "cos_idx_rope": angles.cos().bfloat16().to(device),
        "sin_idx_rope": angles.sin().bfloat16().to(device),
        "hadamard_q": uniform(s.size, s.size),
        "hadamard_k": uniform(s.size, s.size),
        "idx_k_cache": int8(s.blocks, s.block_size, 1, s.size),
        "idx_k_scale_cache": uniform(s.blocks, s.block_size, 1, dtype=torch.float16),
        "idx_k_cache_index": slots.to(device),
        "layernorm_epsilon_k": s.epsilon,
    }


def prolog_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_lightning_indexer_prolog_pto."""
    for name, sizes in CASES.items():
        other = RESIZED.get(name)
        resized = None if other is None else SampleInput((), arguments(other, device))
        yield SampleInput((), arguments(sizes, device), name=name, resized=resized)
    layouts = {"layout_query": "TND", "layout_key": None}
    yield SampleInput((), {**arguments(SMALL, device), **layouts}, name="layouts")
