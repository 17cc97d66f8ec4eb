"""The steps of the fused op, which are public ops, timed beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks.case import Call
from benchmarks.cases import fused
from benchmarks.cases.attention import PUBLISHED_CONTEXTS
from benchmarks.eager import FusedArguments
from benchmarks.measurement import Bench, at_peak


@dataclass(frozen=True)
class Step:
    """A step of the fused op: seconds, and the fraction of the peak (None: unknown)."""

    name: str
    seconds: float
    fraction: float | None


@dataclass(frozen=True)
class FusedSteps:
    """The fused op, and its steps called one by one with the same tensors."""

    size: str
    whole: float
    steps: tuple[Step, ...]

    @property
    def remaining(self) -> float:
        """Time outside the steps; negative: called alone they take longer."""
        return self.whole - sum(step.seconds for step in self.steps)


def measure(bench: Bench) -> FusedSteps:
    """Time the fused op at four contexts from 768 to 131071, and its steps."""
    lengths = list(PUBLISHED_CONTEXTS)
    arguments = fused.arguments(1, lengths)
    work = fused.work(arguments, lengths)
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    with torch.inference_mode():
        calls, _ = steps(arguments)
        every = tuple(work.values())
        yardsticks = bench.yardsticks(fused.OP, every, torch.bfloat16)
        peaks = {name: yardstick.call for name, yardstick in yardsticks.items()}
        # In the op's order: the caches hold the data of the step before.
        times = bench.times({"whole": lambda: op(*arguments), **calls, **peaks}, warm=False)
    measured = []
    for name in calls:
        least = at_peak((work[name],), yardsticks, times)
        measured.append(Step(name, times[name], None if least is None else least / times[name]))
    return FusedSteps("B=4 S1=1, 768..128K", times["whole"], tuple(measured))


def steps(a: FusedArguments) -> tuple[dict[str, Call], Tensor]:
    """Run the steps of the fused op but the last.

    Returns a call of each step with the results of those before it, and the positions
    [B, S1, 1, 2048] that the indexer selected. The steps write the same rows as the fused op.
    """
    ops = torch.ops.custom_pypto
    written = (a.sin, a.cos, a.cache_index)
    mla_weights = (a.w_dq, a.w_uq_qr, a.w_uk, a.w_dkv_kr, a.gamma_cq, a.gamma_ckv)
    mla_prolog = partial(ops.npu_mla_prolog, a.x, *mla_weights, *written, a.kv_cache, a.kr_cache)
    query, query_rope, q_norm = mla_prolog()
    indexer_weights = (a.w_idx_qb, a.w_idx_k, a.w_idx_proj, a.in_gamma_k, a.in_beta_k)
    indexer_prolog = partial(
        ops.npu_indexer_prolog, a.x, q_norm, *indexer_weights, *written, a.index_k_cache
    )
    index_query, weights = indexer_prolog()
    indexer = partial(
        ops.npu_lightning_indexer_pto,
        *(index_query, a.index_k_cache, weights),
        actual_seq_lengths_key=a.act_seqs,
        block_table=a.block_table,
    )
    selected: Tensor = indexer()
    attention = partial(
        ops.npu_sparse_flash_attention,
        *(query, query_rope, a.kv_cache, a.kr_cache, selected, a.block_table, a.act_seqs),
        scale=(a.kv_cache.shape[-1] + a.kr_cache.shape[-1]) ** -0.5,
    )
    calls: dict[str, Call] = {
        "MLA prolog": mla_prolog,
        "indexer prolog": indexer_prolog,
        "indexer": indexer,
        "attention": attention,
    }
    return calls, selected
