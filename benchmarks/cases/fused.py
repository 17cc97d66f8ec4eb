"""The cases of npu_sparse_attention_pto: the prologs, the indexer and the attention in one op."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto.core import contract
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
    random = generator()
    batch = len(lengths)
    table, blocks = block_table(lengths, random)

    def uniform(*shape: int, bound: float = 1.0) -> Tensor:
        return ((torch.rand(*shape, generator=random) * 2 - 1) * bound).bfloat16()

    slots = torch.randperm(blocks * BLOCK, generator=random)[: batch * tokens]
    return FusedArguments(
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
