"""The cases of npu_sparse_attention_pto: the prologs, the indexer and the attention in one op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from custom_pypto.core import contract
from custom_pypto_sparse_attention import samples
from custom_pypto_testing.timing.peaks import Work

from benchmarks.case import Case, Planned, work
from benchmarks.cases import attention, indexer
from benchmarks.eager import FusedArguments

OP = "npu_sparse_attention_pto"
_SMALL = ("w_dq", "w_uq_qr", "w_uk", "w_dkv_kr", "gamma_cq", "gamma_ckv", "sin", "cos")


def cases() -> Iterator[Planned]:
    """Yield the cases: the published sizes."""
    for tokens, contexts, text, quick in attention.PUBLISHED:
        yield Planned(OP, text, partial(_case, tokens, contexts), quick=quick)


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
    given = samples.fused_arguments(
        replace(samples.DEEPSEEK_V32, lengths=tuple(lengths), tokens=tokens)
    )
    for name, each in given.items():
        if each.is_floating_point():
            bound = 0.1 if name in _SMALL else 1.0
            each.copy_((torch.rand(each.shape) * 2 - 1) * bound)
    return FusedArguments(**given)


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
