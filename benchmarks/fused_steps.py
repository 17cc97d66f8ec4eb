"""Where the time of the fused op goes: its steps, which are public ops, timed beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.case import Call
from benchmarks.cases import fused
from benchmarks.cases.attention import LATENT, PUBLISHED_CONTEXTS, ROPE
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
    given = fused.arguments(1, lengths)
    work = fused.work(given, lengths)
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    with torch.inference_mode():
        calls = _steps(given)
        every = tuple(work.values())
        yardsticks = bench.yardsticks(fused.OP, every, torch.bfloat16)
        peaks = {name: yardstick.call for name, yardstick in yardsticks.items()}
        # In the op's order: the caches hold the data of the step before.
        times = bench.times({"whole": lambda: op(*given), **calls, **peaks}, warm=False)
    steps = []
    for name in calls:
        least = at_peak((work[name],), yardsticks, times)
        steps.append(Step(name, times[name], None if least is None else least / times[name]))
    return FusedSteps("B=4 S1=1, 768..128K", times["whole"], tuple(steps))


def _steps(a: FusedArguments) -> dict[str, Call]:
    ops = torch.ops.custom_pypto

    def mla_prolog() -> tuple[torch.Tensor, ...]:
        out: tuple[torch.Tensor, ...] = ops.npu_mla_prolog(
            a.x,
            a.w_dq,
            a.w_uq_qr,
            a.w_uk,
            a.w_dkv_kr,
            a.gamma_cq,
            a.gamma_ckv,
            a.sin,
            a.cos,
            a.cache_index,
            a.kv_cache,
            a.kr_cache,
        )
        return out

    query, query_rope, q_norm = mla_prolog()

    def indexer_prolog() -> tuple[torch.Tensor, ...]:
        out: tuple[torch.Tensor, ...] = ops.npu_indexer_prolog(
            a.x,
            q_norm,
            a.w_idx_qb,
            a.w_idx_k,
            a.w_idx_proj,
            a.in_gamma_k,
            a.in_beta_k,
            a.sin,
            a.cos,
            a.cache_index,
            a.index_k_cache,
        )
        return out

    index_query, weights = indexer_prolog()

    def indexer() -> torch.Tensor:
        out: torch.Tensor = ops.npu_lightning_indexer_pto(
            index_query,
            a.index_k_cache,
            weights,
            actual_seq_lengths_key=a.act_seqs,
            block_table=a.block_table,
        )
        return out

    selected = indexer()

    def attention() -> object:
        return ops.npu_sparse_flash_attention(
            query,
            query_rope,
            a.kv_cache,
            a.kr_cache,
            selected,
            a.block_table,
            a.act_seqs,
            scale=(LATENT + ROPE) ** -0.5,
        )

    return {
        "MLA prolog": mla_prolog,
        "indexer prolog": indexer_prolog,
        "indexer": indexer,
        "attention": attention,
    }
