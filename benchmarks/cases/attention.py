"""The cases of npu_sparse_flash_attention: every token attends to 2048 selected keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_sparse_attention.ops import TOP_K
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from custom_pypto_testing.timing.peaks import Work

from benchmarks.case import BLOCK, Case, Planned, block_table, flops, meta, normal, visible

OP = "npu_sparse_flash_attention"
HEADS, LATENT, ROPE = V32.heads, V32.latent, V32.rope
_CONTEXTS = [768, 4097, 8192, 131071]
PUBLISHED = (
    (1, _CONTEXTS, "B=4 S1=1, 768..128K", True),
    (2, _CONTEXTS, "B=4 S1=2, 768..128K", False),
    (1, [8192] * 32, "B=32 S1=1, 8192", False),
    (1, [4096] * 48, "B=48 S1=1, 4096", False),
)
"""Tokens, contexts, text, and whether a quick run has the case."""
# Standard deviation of the latent cache under the published weights: uniform gammas of +-0.1.
PUBLISHED_LATENTS = 0.058


def cases() -> Iterator[Planned]:
    """Yield the cases: long contexts and the published sizes, then other dtypes."""
    for tokens, contexts, text, quick in (
        (3, [8192], "B=1 S1=3, 8K", True),
        (1, [65536] * 4, "B=4 S1=1, 64K", False),
        *PUBLISHED,
    ):
        yield Planned(OP, text, partial(case, tokens, contexts), quick=quick)
    # Outputs of order 1 need the products of the weights' rounding errors, too.
    yield Planned(OP, "B=32 8192, latents ~ 1", partial(case, 1, [8192] * 32, scale=1.0))
    for dtype in (torch.float32, torch.float16):
        text = f"B=4 S1=1, 64K, {str(dtype).removeprefix('torch.')}"
        # PyTorch multiplies fp16 twenty times slower than it widens to fp32 and multiplies that.
        make = partial(case, 1, [65536] * 4, dtype, slow_products=dtype == torch.float16)
        yield Planned(OP, text, make)
    for text, inference in (("one key", True), ("one key, autograd on", False)):
        yield Planned(OP, text, _one_key, quick=True, inference=inference)


def case(
    tokens: int,
    lengths: list[int],
    dtype: torch.dtype = torch.bfloat16,
    scale: float = PUBLISHED_LATENTS,
    *,
    slow_products: bool = False,
) -> Case:
    """Make a case of 128 heads of 512 + 64; `scale` is the standard deviation of the latents.

    `slow_products`: PyTorch has no fast products of this dtype, so the baseline's are fp32.
    """
    batch = len(lengths)
    table, blocks = block_table(lengths)
    kv = normal(blocks, BLOCK, 1, LATENT, dtype=dtype, scale=scale)
    kr = normal(blocks, BLOCK, 1, ROPE, dtype=dtype)
    query = normal(batch, tokens, HEADS, LATENT, dtype=dtype)
    query_rope = normal(batch, tokens, HEADS, ROPE, dtype=dtype)
    act = torch.tensor(lengths, dtype=torch.int32)
    indices = torch.full((batch, tokens, 1, TOP_K), -1, dtype=torch.int32)
    for b, length in enumerate(lengths):
        for s in range(tokens):
            seen = length - tokens + 1 + s
            chosen = torch.randperm(seen)[:TOP_K]
            indices[b, s, 0, : len(chosen)] = chosen
    factor = (LATENT + ROPE) ** -0.5
    too_coarse_in_bf16 = scale > PUBLISHED_LATENTS and dtype == torch.bfloat16
    exactly = too_coarse_in_bf16 or slow_products
    op = torch.ops.custom_pypto.npu_sparse_flash_attention
    return Case(
        lambda: op(query, query_rope, kv, kr, indices, table, act, scale=factor),
        lambda base: (
            lambda: base.sparse_flash_attention(
                query, query_rope, kv, kr, indices, table, factor, exactly=exactly
            )
        ),
        (work(tokens, lengths),),
        dtype,
        has_bf16_scores=too_coarse_in_bf16,
    )


def work(tokens: int, lengths: list[int]) -> Work:
    """Return the work of attending to every selected row, as one token that selected them all."""
    selected = visible(lengths, tokens, TOP_K)
    query, query_rope = meta(1, 1, HEADS, LATENT), meta(1, 1, HEADS, ROPE)
    kv, kr = meta(1, selected, 1, LATENT), meta(1, selected, 1, ROPE)
    indices = meta(1, 1, 1, selected, dtype=torch.int32)
    return flops(OP, query, query_rope, kv, kr, indices, scale=1.0, layout_kv="BSND")


def _one_key() -> Case:
    query, query_rope, kv, kr = torch.ones(4, 1, 1, 1, 1)
    indices = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
    table, one = indices[0, 0], torch.ones(1, dtype=torch.int32)
    op = torch.ops.custom_pypto.npu_sparse_flash_attention
    return Case(
        lambda: op(query, query_rope, kv, kr, indices, table, one, scale=1.0),
        lambda base: (
            lambda: base.sparse_flash_attention(query, query_rope, kv, kr, indices, table, 1.0)
        ),
        dtype=torch.float32,
    )
