"""A case: one op at one size, its baseline, its work, and random contents of paged caches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto import core
from custom_pypto.core.contracts import bind_arguments, evaluate_cost
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from custom_pypto_testing.timing.peaks import Work
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.eager import Baseline

Call = Callable[[], object]
BLOCK = V32.block_size


@dataclass(frozen=True)
class Case:
    """One op at one size."""

    ours: Call
    baseline: Callable[[Baseline], Call]
    work: tuple[Work, ...] = ()
    """The steps of the op, in order; none: the call itself dominates."""
    dtype: torch.dtype = torch.bfloat16
    has_bf16_scores: bool = False
    """Whether Baseline.with_bf16_scores differs from Baseline."""
    in_bf16: Call | None = None
    """The same work by our op for bf16 numbers."""


@dataclass(frozen=True)
class Planned:
    """A case that makes its data only when it runs."""

    op: str
    size: str
    make: Callable[[], Case]
    quick: bool = False
    """Whether it belongs to a quick run."""
    inference: bool = True
    """Whether inference mode is on, as in serving."""

    @property
    def name(self) -> str:
        """Op and size."""
        return f"{self.op} {self.size}"


def work(op: str, *args: Any, **kwargs: Any) -> Work:
    """Return what the contract of an op says that a call costs; it may have tensors on meta."""
    contract = core.contract(op)
    given = bind_arguments(contract, args, kwargs)
    return Work(
        *(evaluate_cost(contract, cost, given) or 0 for cost in (contract.flops, contract.bytes))
    )


def flops(op: str, *args: Any, **kwargs: Any) -> Work:
    """Return the work of a call that memory does not limit."""
    return Work(work(op, *args, **kwargs).flops)


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Return a tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


def block_table(lengths: list[int]) -> tuple[Tensor, int]:
    """Return a table [B, M] of shuffled blocks that holds the lengths, and how many blocks."""
    needed = [-(-length // BLOCK) for length in lengths]
    rows = list(torch.split(torch.randperm(sum(needed)).int(), needed))
    return pad_sequence(rows, batch_first=True, padding_value=-1), sum(needed)


def normal(*shape: int, dtype: torch.dtype, scale: float = 1) -> Tensor:
    """Return normal numbers, rounded to `dtype` in slices: an fp32 copy needs too much memory."""
    out = torch.empty(shape, dtype=dtype)
    for part in torch.split(out, max(1, 2**24 * len(out) // max(1, out.numel()))):
        part.copy_(torch.randn(part.shape).mul_(scale))
    return out


def visible(lengths: list[int], tokens: int, most: int = sys.maxsize) -> int:
    """Count the keys that the last `tokens` tokens of each sequence see, at most `most` a token."""
    seen = (max(length - s, 0) for length in lengths for s in range(tokens))
    return sum(min(count, most) for count in seen)
