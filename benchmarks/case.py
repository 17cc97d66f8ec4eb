"""A case: one op at one size, its baseline, its work, and its targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from benchmarks.eager import Baseline
from benchmarks.work import Work

Call = Callable[[], object]

# A call may cost so much more where autograd is on and no tensor requires grad.
AUTOGRAD = 3e-6


@dataclass(frozen=True)
class Case:
    """One op at one size."""

    ours: Call
    baseline: Callable[[Baseline], Call]
    work: tuple[Work, ...] = ()
    """The steps of the op, in order; none: the call itself dominates."""
    dtype: torch.dtype = torch.bfloat16
    selection_seconds: Callable[[], float] | None = None
    """Runs ours with a clock around the top-k; returns the seconds of the top-k."""
    has_bf16_scores: bool = False
    """Whether Baseline.with_bf16_scores differs from Baseline."""
    in_bf16: Call | None = None
    """The same work by our op for bf16 numbers."""
    no_op: Call | None = None
    """The same call of a no-op."""


@dataclass(frozen=True)
class Targets:
    """The targets of a case; None: none."""

    fraction: float | None = None
    """At least this fraction of the peak."""
    eager: float | None = None
    """Torch eager takes at least this many times as long."""
    compiled: float | None = None
    """Torch.compile takes at least this many times as long."""
    in_bf16: float | None = None
    """Our op for bf16 numbers takes at least this many times as long."""
    selection: float | None = None
    """The top-k takes at most this share of the time."""
    over_no_op: float | None = None
    """A call takes at most this many seconds longer than a no-op."""
    over_eager: float | None = None
    """A call takes at most this many seconds longer than torch eager."""


@dataclass(frozen=True)
class Planned:
    """A case that makes its data only when it runs."""

    op: str
    size: str
    make: Callable[[], Case]
    quick: bool = False
    """Whether it belongs to a quick run."""
    targets: Targets = field(default_factory=Targets)
    threads: int | None = None
    """None: as many as torch has."""
    inference: bool = True
    """Whether inference mode is on, as in serving."""

    @property
    def name(self) -> str:
        """Op and size."""
        return f"{self.op} {self.size}"


def dispatch_cases(
    op: str, size: str, make: Callable[[], Case], over_no_op: float
) -> Iterator[Planned]:
    """Yield a small call in inference mode, and one with autograd on, which time the dispatch.

    In inference mode it takes at most `over_no_op` seconds longer than a no-op.
    """
    targets = Targets(over_no_op=over_no_op)
    yield Planned(op, size, make, quick=True, targets=targets)
    targets = Targets(over_no_op=over_no_op + AUTOGRAD)
    yield Planned(op, f"{size}, autograd on", make, quick=True, targets=targets, inference=False)
