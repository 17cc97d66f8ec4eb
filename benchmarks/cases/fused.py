"""The cases of npu_sparse_attention_pto: the prologs, the indexer and the attention in one op."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto.core import contract
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from custom_pypto_testing.timing.peaks import Work
from torch import Tensor

from benchmarks.case import BLOCK, Case, Planned, block_table, generator, work
from benchmarks.cases import attention, indexer
from benchmarks.cases.attention import PUBLISHED_CONTEXTS
from benchmarks.eager import FusedArguments

OP = "npu_sparse_attention_pto"


def cases() -> Iterator[Planned]:
    """Yield the cases: the published sizes."""
    for tokens, contexts, text, quick in (
        (1, list(PUBLISHED_CONTEXTS), "B=4 S1=1, 768..128K", True),
        (2, list(PUBLISHED_CONTEXTS), "B=4 S1=2, 768..128K", False),
        (1, [8192] * 32, "B=32 S1=1, 8192", False),
        (1, [4096] * 48, "B=48 S1=1, 4096", False),
    ):
        make = partial(_case, tokens, contexts)
        yield Planned(OP, text, make, quick=quick)


def _case(tokens: int, lengths: list[int]) -> Case:
    given = _arguments(tokens, lengths)
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    return Case(
        lambda: op(*given),
        lambda base: lambda: base.sparse_attention(given),
        _steps(given, lengths),
        has_bf16_scores=True,
    )


def _arguments(tokens: int, lengths: list[int]) -> FusedArguments:
    """Make the twenty tensors, distributed like the published test data."""
    s, random = V32, generator()
    batch = len(lengths)
    table, blocks = block_table(lengths, random)

    def uniform(*shape: int, bound: float = 1.0) -> Tensor:
        return ((torch.rand(*shape, generator=random) * 2 - 1) * bound).bfloat16()

    slots = torch.randperm(blocks * BLOCK, generator=random)[: batch * tokens]
    return FusedArguments(
        x=uniform(batch, tokens, s.hidden),
        w_dq=uniform(s.hidden, s.query_rank, bound=0.1),
        w_uq_qr=uniform(s.query_rank, s.heads * (s.nope + s.rope), bound=0.1),
        w_uk=uniform(s.heads, s.nope, s.latent, bound=0.1),
        w_dkv_kr=uniform(s.hidden, s.latent + s.rope, bound=0.1),
        gamma_cq=uniform(s.query_rank, bound=0.1),
        gamma_ckv=uniform(s.latent, bound=0.1),
        sin=uniform(batch, tokens, s.rope, bound=0.1),
        cos=uniform(batch, tokens, s.rope, bound=0.1),
        cache_index=slots.int().view(batch, tokens),
        kv_cache=uniform(blocks, BLOCK, 1, s.latent),
        kr_cache=uniform(blocks, BLOCK, 1, s.rope),
        block_table=table,
        act_seqs=torch.tensor(lengths, dtype=torch.int32),
        w_idx_qb=uniform(s.query_rank, s.index_heads * s.index_size),
        w_idx_k=uniform(s.hidden, s.index_size),
        w_idx_proj=uniform(s.hidden, s.index_heads),
        in_gamma_k=uniform(s.index_size),
        in_beta_k=uniform(s.index_size),
        index_k_cache=uniform(blocks, BLOCK, 1, s.index_size),
    )


def _steps(given: FusedArguments, lengths: list[int]) -> tuple[Work, ...]:
    """Return the work of each step; a prolog reads its weights from memory."""
    tokens = given.x.shape[1]
    named = given._asdict() | {
        "q_norm": given.x.new_empty(*given.x.shape[:-1], given.w_dq.shape[-1])
    }
    prologs = (
        work(op, **{each.name: named[each.name] for each in contract(op).arguments})
        for op in ("npu_mla_prolog", "npu_indexer_prolog")
    )
    return (*prologs, indexer.work(tokens, lengths), attention.work(tokens, lengths))
