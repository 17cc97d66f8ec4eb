"""A row: the measured times of one case, and the ratios between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.case import Targets

# A row has the ratio of each to ours.
OTHERS = ("eager", "bf16_scores", "in_bf16", "compiled", "one_thread")


@dataclass(frozen=True)
class Row:
    """The medians of one case."""

    op: str
    size: str
    threads: int
    times: dict[str, float]
    """Seconds of each call that was timed:

    - ours;
    - eager, compiled: PyTorch;
    - bf16_scores: PyTorch eager with bf16 scores: faster, fails the accuracy rule;
    - in_bf16: our op for bf16 numbers, where ours is for int8;
    - one_thread: ours on one thread, where it takes more than 1 ms on several;
    - clocked: ours on one thread, with a clock around the top-k;
    - no_op: a no-op, called like ours.
    """
    selecting: float | None = None
    """The part of `clocked` that the top-k took."""
    at_peak: float | None = None
    """The seconds of the same work at the peak that was measured in the same rounds."""
    targets: Targets = field(default_factory=Targets)

    @property
    def name(self) -> str:
        """Op and size."""
        return f"{self.op} {self.size}"

    @property
    def ours(self) -> float:
        """The seconds of our op."""
        return self.times["ours"]

    @property
    def fraction(self) -> float | None:
        """The fraction of the peak that ours reaches."""
        return None if self.at_peak is None else self.at_peak / self.ours

    @property
    def selection(self) -> float | None:
        """The share of the time that the top-k takes."""
        return None if self.selecting is None else self.selecting / self.times["clocked"]

    def ratio(self, other: str) -> float | None:
        """Return how many times longer than ours another call takes; None: not timed."""
        return self.times[other] / self.ours if other in self.times else None

    def to_json(self) -> dict[str, Any]:
        """Return the times and ratios."""
        row = asdict(self)
        return {
            **row.pop("times"),
            **row,
            "fraction": self.fraction,
            "selection": self.selection,
            **{f"against_{other}": self.ratio(other) for other in OTHERS},
        }
