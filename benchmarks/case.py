"""What is timed: a call of ours, the same by a baseline, and what both cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from benchmarks.eager import Baseline

Call = Callable[[], object]


@dataclass(frozen=True)
class Work:
    """Work that goes at the processor's peak or at that of the memory, whichever takes longer."""

    flop: float = 0
    """Floating-point operations: two for each multiply-add of what is visible or selected."""

    bytes: float = 0
    """What has to come from memory or go there."""


@dataclass(frozen=True)
class Case:
    """One op at one size."""

    ours: Call
    baseline: Callable[[Baseline], Call]
    work: tuple[Work, ...] = ()
    """The steps of the op, one after the other; none: the work is nothing beside the call."""
    dtype: torch.dtype = torch.bfloat16
    selection_seconds: Callable[[], float] | None = None
    """Ours with a clock in it: returns the seconds of the top-k."""
    rounds: bool = False
    """Whether Baseline.rounded does something else than Baseline."""
    nothing: Call | None = None
    """The same call of an op that does nothing."""


@dataclass(frozen=True)
class Reach:
    """What issue 4 asks of a case; None: nothing."""

    fraction: float | None = None
    """At least this fraction of the peak."""
    eager: float | None = None
    """Torch eager takes at least this many times as long."""
    compiled: float | None = None
    """Torch.compile takes at least this many times as long."""
    selection: float | None = None
    """The top-k takes at most this share of the time."""
    over_nothing: float | None = None
    """A call takes at most this many seconds longer than one of an op that does nothing."""
    behind_eager: float | None = None
    """A call takes at most this many seconds longer than torch eager."""


@dataclass(frozen=True)
class Planned:
    """A case whose data is made only when its turn comes."""

    op: str
    size: str
    make: Callable[[], Case]
    quick: bool = False
    """Whether it belongs to a quick run."""
    reach: Reach = field(default_factory=Reach)
    threads: int | None = None
    """None: as many as torch has."""
    inference: bool = True
    """Whether autograd is off altogether, as it is where a model serves."""

    @property
    def name(self) -> str:
        """Op and size."""
        return f"{self.op} {self.size}"
