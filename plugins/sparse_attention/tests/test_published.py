"""The published sizes, kind of data and tolerance of npu_sparse_attention_pto.

What is expected is computed here, from the op's definition alone: a mistake that kernels, reference
and comparison of the plugin share would show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

Op = Callable[..., Tensor]

HIDDEN, QUERY_RANK, HEADS, NOPE, ROPE, LATENT = 7168, 1536, 128, 128, 64, 512
INDEX_HEADS, INDEX_SIZE = 64, 128
BLOCK, TOP_K = 128, 2048

RTOL, ATOL = 0.03, 1e-4
PART, L2 = 0.999, 5e-3
"""How much of a tensor must be close, and how far it may be off as a whole. The published rule is
97 % of the output. But one other key of 2048 moves half of a row's elements, and keys next to the
last chosen one have the same score up to roundings to bf16. So, as in `comparison`, the selection
is compared by its scores, and the output for the selection."""
GAP, OTHERS = 2e-3, 16
"""How much less, of the row's highest score, a chosen key may score than one that was left out; and
how many may be others than those of the reference."""

FOUR = [768, 4097, 8192, 131071]
SIZES: dict[str, tuple[list[int], int]] = {
    "4-of-768-to-128K": (FOUR, 1),
    "4-of-768-to-128K-two-tokens": (FOUR, 2),
    "32-of-8192": ([8192] * 32, 1),
    "48-of-4096": ([4096] * 48, 1),
}
"""act_seqs, and query tokens of each sequence."""


def uniform(generator: torch.Generator, bound: float, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.bfloat16).uniform_(-bound, bound, generator=generator)


@pytest.fixture(scope="module")
def weights() -> Namespace:
    generator = torch.Generator().manual_seed(0)
    return Namespace(
        w_dq=uniform(generator, 0.1, HIDDEN, QUERY_RANK),
        w_uq_qr=uniform(generator, 0.1, QUERY_RANK, HEADS * (NOPE + ROPE)),
        w_uk=uniform(generator, 0.1, HEADS, NOPE, LATENT),
        w_dkv_kr=uniform(generator, 0.1, HIDDEN, LATENT + ROPE),
        gamma_cq=uniform(generator, 1, QUERY_RANK),
        gamma_ckv=uniform(generator, 1, LATENT),
        w_idx_qb=uniform(generator, 1, QUERY_RANK, INDEX_HEADS * INDEX_SIZE),
        w_idx_k=uniform(generator, 1, HIDDEN, INDEX_SIZE),
        w_idx_proj=uniform(generator, 1, HIDDEN, INDEX_HEADS),
        in_gamma_k=torch.ones(INDEX_SIZE, dtype=torch.bfloat16),
        in_beta_k=torch.zeros(INDEX_SIZE, dtype=torch.bfloat16),
    )


def inputs(lengths: list[int], tokens: int) -> Namespace:
    """Every argument but the weights; the op writes to the caches.

    Caches are filled, with blocks in random order; the new tokens' slots lie anywhere in them.
    """
    generator = torch.Generator().manual_seed(1)
    needed = [-(-length // BLOCK) for length in lengths]
    blocks, batch = sum(needed), len(lengths)
    order = torch.randperm(blocks, generator=generator, dtype=torch.int32)
    table = torch.full((batch, max(needed)), -1, dtype=torch.int32)
    for row, end, count in zip(table, accumulate(needed), needed, strict=True):
        row[:count] = order[end - count : end]
    slots = torch.randperm(blocks * BLOCK, generator=generator, dtype=torch.int32)
    return Namespace(
        x=uniform(generator, 1, batch, tokens, HIDDEN),
        sin=uniform(generator, 0.1, batch, tokens, ROPE),
        cos=uniform(generator, 0.1, batch, tokens, ROPE),
        cache_index=slots[: batch * tokens].view(batch, tokens),
        kv_cache=uniform(generator, 1, blocks, BLOCK, 1, LATENT),
        kr_cache=uniform(generator, 1, blocks, BLOCK, 1, ROPE),
        block_table=table,
        act_seqs=torch.tensor(lengths, dtype=torch.int32),
        index_k_cache=uniform(generator, 1, blocks, BLOCK, 1, INDEX_SIZE),
    )


def rounded(x: Tensor) -> Tensor:
    """r() of the definition; products and sums are taken in fp32."""
    return x.bfloat16().float()


def rms_normed(x: Tensor, gamma: Tensor) -> Tensor:
    return rounded(x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gamma.float())


def rotated(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """x [T, n, R] with its even dims first, then its odd ones, rotated by angles [T, R]."""
    apart = x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    first, second = apart.chunk(2, -1)
    across = torch.cat([-second, first], -1)
    return rounded(apart * cos.float()[:, None] + across * sin.float()[:, None])


@dataclass(frozen=True)
class Expected:
    """The results of the prologs; `keys` are the new tokens' rows of each cache."""

    query: Tensor  # [T, N1, L + R]
    index_query: Tensor  # [T, N, D]
    index_weights: Tensor  # [T, N]
    keys: dict[str, Tensor]  # [T, L], [T, R], [T, D]


def prologs(given: Namespace, w: Namespace) -> Expected:
    x = given.x.flatten(0, 1).float()
    angles = given.sin.flatten(0, 1), given.cos.flatten(0, 1)
    low_rank = rms_normed(rounded(x @ w.w_dq.float()), w.gamma_cq)
    both = rounded(low_rank @ w.w_uq_qr.float()).unflatten(-1, (HEADS, NOPE + ROPE))
    latent_query = rounded(torch.einsum("tnd,ndl->tnl", both[..., :NOPE], w.w_uk.float()))
    key = rounded(x @ w.w_dkv_kr.float())
    index_query = rounded(low_rank @ w.w_idx_qb.float()).unflatten(-1, (INDEX_HEADS, INDEX_SIZE))
    index_key = rounded(
        functional.layer_norm(
            x @ w.w_idx_k.float(),
            (INDEX_SIZE,),
            w.in_gamma_k.float(),
            w.in_beta_k.float(),
            eps=1e-6,
        )
    )[:, None]

    def rotated_first(heads: Tensor) -> Tensor:
        return torch.cat([rotated(heads[..., :ROPE], *angles), heads[..., ROPE:]], -1)

    return Expected(
        query=torch.cat([latent_query, rotated(both[..., NOPE:], *angles)], -1),
        index_query=rotated_first(index_query),
        index_weights=rounded(x @ w.w_idx_proj.float()),
        keys={
            "kv_cache": rms_normed(key[:, :LATENT], w.gamma_ckv),
            "kr_cache": rotated(key[:, None, LATENT:], *angles)[:, 0],
            "index_k_cache": rotated_first(index_key)[:, 0],
        },
    )


def at_slots(given: Namespace, name: str) -> Tensor:
    """[T, size] of the cache of that name, where the new tokens are."""
    cache: Tensor = getattr(given, name)
    return cache.flatten(0, 2)[given.cache_index.flatten().long()]


def fill(given: Namespace, keys: dict[str, Tensor]) -> None:
    for name, rows in keys.items():
        cache = getattr(given, name)
        cache.flatten(0, 2)[given.cache_index.flatten().long()] = rows.to(cache.dtype)


def rows_of(given: Namespace) -> list[tuple[int, int]]:
    """Each query token's sequence, and how many positions of it the token sees."""
    batch, tokens = given.cache_index.shape
    lengths = given.act_seqs.tolist()
    return [(b, max(lengths[b] - tokens + 1 + s, 0)) for b in range(batch) for s in range(tokens)]


def gathered(cache: Tensor, table: Tensor, positions: Tensor) -> Tensor:
    """[n, size] in fp32 of a sequence's positions [n]."""
    slots = table.long()[positions // BLOCK] * BLOCK + positions % BLOCK
    return cache.flatten(0, 2)[slots].float()


def scores_of(given: Namespace, expected: Expected) -> list[Tensor]:
    """The scores of the positions that each row sees."""
    result = []
    for row, (b, visible) in enumerate(rows_of(given)):
        keys = gathered(given.index_k_cache, given.block_table[b], torch.arange(visible))
        dots = (expected.index_query[row] @ keys.T).relu_()
        result.append(expected.index_weights[row] @ dots)
    return result


def attended(given: Namespace, expected: Expected, selection: list[Tensor]) -> Tensor:
    """[T, N1, L]: each row attends to its selected positions."""
    rows = []
    for row, (b, _) in enumerate(rows_of(given)):
        values, rope = (
            gathered(cache, given.block_table[b], selection[row])
            for cache in (given.kv_cache, given.kr_cache)
        )
        logits = expected.query[row] @ torch.cat([values, rope], -1).T * (LATENT + ROPE) ** -0.5
        rows.append(rounded(logits.softmax(-1) @ values))
    return torch.stack(rows)


def select_by_op(given: Namespace, w: Namespace) -> list[Tensor]:
    """The selection of the op's indexer, by its pieces, which give the same bits."""
    ops = torch.ops.custom_pypto
    mla = (w.w_dq, w.w_uq_qr, w.w_uk, w.w_dkv_kr, w.gamma_cq, w.gamma_ckv)
    index = (w.w_idx_qb, w.w_idx_k, w.w_idx_proj, w.in_gamma_k, w.in_beta_k)
    angles = (given.sin, given.cos, given.cache_index)
    q_norm = ops.npu_mla_prolog(given.x, *mla, *angles, given.kv_cache, given.kr_cache)[2]
    query, heads = ops.npu_indexer_prolog(given.x, q_norm, *index, *angles, given.index_k_cache)
    positions = ops.npu_lightning_indexer_pto(
        query,
        given.index_k_cache,
        heads,
        actual_seq_lengths_key=given.act_seqs,
        block_table=given.block_table,
    )
    return [row[row >= 0].long() for row in positions.flatten(0, 2)]


def check_selection(chosen: list[Tensor], scores: list[Tensor]) -> None:
    for row, (positions, of_row) in enumerate(zip(chosen, scores, strict=True)):
        best = of_row.topk(min(len(of_row), TOP_K))
        others = set(positions.tolist()) - set(best.indices.tolist())
        kept = len(set(positions.tolist()))
        assert kept == len(positions) == len(best.indices), f"row {row}: {kept} positions"
        assert len(others) <= OTHERS, f"row {row}: {len(others)} positions are not of the best"
        gap = float((best.values[-1] - of_row[positions].min()) / best.values[0])
        assert gap <= GAP, f"row {row}: a position scores {gap:.3g} too low; {GAP} is allowed"


def check_close(actual: Tensor, expected: Tensor, what: str) -> None:
    close = torch.isclose(actual.float(), expected, rtol=RTOL, atol=ATOL).float().mean().item()
    assert close >= PART, f"{what}: {close:.3%} of the elements are close; {PART:.1%} must be"
    error = ((actual.float() - expected).norm() / expected.norm()).item()
    assert error <= L2, f"{what}: the relative L2 error is {error:.3g}; {L2} is allowed"


def check(op: Op, given: Namespace, weights: Namespace, expected: Expected) -> None:
    """Hold output, caches and selection of the op against what is expected."""
    fill(given, expected.keys)
    scores = scores_of(given, expected)
    # A row that the op does not write stays NaN.
    fill(given, {name: torch.full_like(rows, torch.nan) for name, rows in expected.keys.items()})
    arguments: dict[str, Any] = {**vars(given), **vars(weights)}
    out = op(**arguments).flatten(0, 1)
    for name, rows in expected.keys.items():
        check_close(at_slots(given, name), rows, name)
    chosen = select_by_op(given, weights)
    check_selection(chosen, scores)
    check_close(out, attended(given, expected, chosen), "output")


@pytest.mark.parametrize("size", SIZES)
def test_published_size(fused: Op, weights: Namespace, size: str) -> None:
    given = inputs(*SIZES[size])
    check(fused, given, weights, prologs(given, weights))


@pytest.fixture(scope="module")
def some(weights: Namespace) -> tuple[Namespace, Expected]:
    given = inputs([768, 4097], 1)
    return given, prologs(given, weights)


@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        ("w_uq_qr", slice(ROPE), "output"),
        ("w_uk", slice(3), "output"),
        ("w_dkv_kr", slice(HIDDEN // 2), "kv_cache"),
        ("gamma_cq", slice(None), "output"),
        ("gamma_ckv", slice(8), "kv_cache"),
        ("w_idx_qb", slice(QUERY_RANK // 4), "not of the best"),
        ("w_idx_k", slice(HIDDEN // 4), "index_k_cache"),
        ("w_idx_proj", slice(HIDDEN // 4), "not of the best"),
        ("in_gamma_k", slice(8), "index_k_cache"),
    ],
)
def test_a_part_of_a_weight_that_is_scaled_is_found(
    fused: Op,
    weights: Namespace,
    some: tuple[Namespace, Expected],
    name: str,
    part: slice,
    message: str,
) -> None:
    given, expected = some
    scaled = getattr(weights, name).clone()
    scaled[part] *= 1.25
    with pytest.raises(AssertionError, match=message):
        check(fused, given, Namespace(**{**vars(weights), name: scaled}), expected)
