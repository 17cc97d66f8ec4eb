"""What is timed: each op at the sizes it is published with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.eager import Baseline, FusedArguments

BLOCK = 128
SPARSE_COUNT = 2048
PUBLISHED_CONTEXTS = (768, 4097, 8192, 131071)
# Standard deviation of the latent cache that the published weights make: uniform gammas of +-0.1.
PUBLISHED_LATENTS = 0.058

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One op at one size: a call of ours, and the same by a baseline."""

    op: str
    size: str
    ours: Call
    baseline: Callable[[Baseline], Call]


@dataclass(frozen=True)
class Planned:
    """A case whose data is made only when its turn comes."""

    op: str
    size: str
    make: Callable[[], Case]
    quick: bool
    """Whether it belongs to a quick run."""


def all_cases() -> Iterator[Planned]:
    """Yield every case, op by op."""
    for shape, dtype, quick in (
        ((16,), torch.float32, True),
        ((8, 2048), torch.float16, False),
        ((4096, 7168), torch.bfloat16, True),
    ):
        size = f"{list(shape)} {str(dtype).removeprefix('torch.')}"
        yield Planned("add_custom", size, _later(_add, size, shape, dtype), quick)

    for batch, tokens, lengths, text, quick in (
        (2, 3, [122] * 2, "B=2 S1=3, 122", True),
        (32, 3, _ragged(32, 1, 8192), "B=32 S1=3, 1..8192", True),
        (4, 1, [65536] * 4, "B=4 S1=1, 64K", True),
        (48, 4, _ragged(48, 32768, 131072), "B=48 S1=4, 32K..128K", False),
    ):
        op = "npu_lightning_indexer_pto"
        yield Planned(op, text, _later(_indexer, text, batch, tokens, lengths), quick)

    for op, make in (
        ("npu_sparse_flash_attention", _attention),
        ("npu_sparse_attention_pto", _fused),
    ):
        for tokens, contexts, text, quick in (
            (1, list(PUBLISHED_CONTEXTS), "B=4 S1=1, 768..128K", True),
            (2, list(PUBLISHED_CONTEXTS), "B=4 S1=2, 768..128K", False),
            (1, [8192] * 32, "B=32 S1=1, 8192", False),
            (1, [4096] * 48, "B=48 S1=1, 4096", False),
        ):
            yield Planned(op, text, _later(make, text, tokens, contexts), quick)
        if make is _attention:
            # Outputs of order 1 need the products of the weights' rounding errors, too.
            text = "B=32 8192, latents ~ 1"
            yield Planned(op, text, _later(make, text, 1, [8192] * 32, 1.0), False)


def _later(make: Callable[..., Case], *arguments: object) -> Callable[[], Case]:
    return lambda: make(*arguments)


def _add(size: str, shape: tuple[int, ...], dtype: torch.dtype) -> Case:
    generator = _generator()
    a = torch.randn(shape, generator=generator).to(dtype)
    b = torch.randn(shape, generator=generator).to(dtype)
    op = torch.ops.custom_pypto.add_custom
    return Case("add_custom", size, lambda: op(a, b), lambda base: lambda: base.add(a, b))


def _indexer(text: str, batch: int, tokens: int, lengths: list[int]) -> Case:
    generator = _generator()
    table, blocks = _block_table(lengths, generator)
    key = torch.randn(blocks, BLOCK, 1, 128, generator=generator).bfloat16()
    query = torch.randn(batch, tokens, 64, 128, generator=generator).bfloat16()
    weights = torch.randn(batch, tokens, 64, generator=generator).bfloat16()
    act = torch.tensor(lengths, dtype=torch.int32)
    op = torch.ops.custom_pypto.npu_lightning_indexer_pto

    def ours() -> object:
        return op(query, key, weights, actual_seq_lengths_key=act, block_table=table)

    return Case(
        "npu_lightning_indexer_pto",
        text,
        ours,
        lambda base: lambda: base.lightning_indexer(query, key, weights, act, table),
    )


def _attention(
    text: str, tokens: int, lengths: list[int], latent_scale: float = PUBLISHED_LATENTS
) -> Case:
    generator = _generator()
    batch = len(lengths)
    table, blocks = _block_table(lengths, generator)
    kv = torch.randn(blocks, BLOCK, 1, 512, generator=generator).mul_(latent_scale).bfloat16()
    kr = torch.randn(blocks, BLOCK, 1, 64, generator=generator).bfloat16()
    query = torch.randn(batch, tokens, 128, 512, generator=generator).bfloat16()
    query_rope = torch.randn(batch, tokens, 128, 64, generator=generator).bfloat16()
    act = torch.tensor(lengths, dtype=torch.int32)
    indices = torch.full((batch, tokens, 1, SPARSE_COUNT), -1, dtype=torch.int32)
    for b, length in enumerate(lengths):
        for s in range(tokens):
            visible = length - tokens + 1 + s
            chosen = torch.randperm(visible, generator=generator)[:SPARSE_COUNT]
            indices[b, s, 0, : len(chosen)] = chosen
    scale = 576**-0.5
    op = torch.ops.custom_pypto.npu_sparse_flash_attention

    def ours() -> object:
        return op(query, query_rope, kv, kr, indices, table, act, scale=scale)

    return Case(
        "npu_sparse_flash_attention",
        text,
        ours,
        lambda base: (
            lambda: base.sparse_flash_attention(query, query_rope, kv, kr, indices, table, scale)
        ),
    )


def _fused(text: str, tokens: int, lengths: list[int]) -> Case:
    generator = _generator()
    batch = len(lengths)
    table, blocks = _block_table(lengths, generator)

    def uniform(*shape: int, bound: float = 1.0) -> Tensor:
        return ((torch.rand(*shape, generator=generator) * 2 - 1) * bound).bfloat16()

    slots = torch.randperm(blocks * BLOCK, generator=generator)[: batch * tokens]
    arguments = FusedArguments(
        x=uniform(batch, tokens, 7168),
        w_dq=uniform(7168, 1536, bound=0.1),
        w_uq_qr=uniform(1536, 128 * 192, bound=0.1),
        w_uk=uniform(128, 128, 512, bound=0.1),
        w_dkv_kr=uniform(7168, 576, bound=0.1),
        gamma_cq=uniform(1536, bound=0.1),
        gamma_ckv=uniform(512, bound=0.1),
        sin=uniform(batch, tokens, 64, bound=0.1),
        cos=uniform(batch, tokens, 64, bound=0.1),
        cache_index=slots.int().view(batch, tokens),
        kv_cache=uniform(blocks, BLOCK, 1, 512),
        kr_cache=uniform(blocks, BLOCK, 1, 64),
        block_table=table,
        act_seqs=torch.tensor(lengths, dtype=torch.int32),
        w_idx_qb=uniform(1536, 64 * 128),
        w_idx_k=uniform(7168, 128),
        w_idx_proj=uniform(7168, 64),
        in_gamma_k=uniform(128),
        in_beta_k=uniform(128),
        index_k_cache=uniform(blocks, BLOCK, 1, 128),
    )
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    return Case(
        "npu_sparse_attention_pto",
        text,
        lambda: op(*arguments),
        lambda base: lambda: base.sparse_attention(arguments),
    )


def _ragged(count: int, low: int, high: int) -> list[int]:
    return torch.randint(low, high + 1, (count,), generator=_generator()).tolist()


def _block_table(lengths: list[int], generator: torch.Generator) -> tuple[Tensor, int]:
    """Return a table [B, M] of shuffled blocks that holds the lengths, and how many blocks."""
    needed = [-(-length // BLOCK) for length in lengths]
    free = torch.randperm(sum(needed), generator=generator).int()
    table = torch.full((len(lengths), max(needed)), -1, dtype=torch.int32)
    for row, blocks in zip(table, torch.split(free, needed), strict=True):
        row[: len(blocks)] = blocks
    return table, sum(needed)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
