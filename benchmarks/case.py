"""A case: one op at one size, its baseline and its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto import core
from custom_pypto.core.contracts import bind_arguments, count_bytes, count_flops
from custom_pypto_testing.timing.peaks import Work

from benchmarks.eager import Baseline

Call = Callable[[], object]


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
    threads: int | None = None
    """None: as many as torch has."""
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
    return Work(count_flops(contract, given) or 0, count_bytes(contract, given) or 0)


def flops(op: str, *args: Any, **kwargs: Any) -> Work:
    """Return the work of a call that memory does not limit."""
    return Work(work(op, *args, **kwargs).flops)


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return a tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")
