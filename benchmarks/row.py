"""A row: the measured times of one case, and the ratios between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.case import Targets


@dataclass(frozen=True)
class Row:
    """The medians of one case in seconds; None: not timed."""

    op: str
    size: str
    threads: int
    ours: float
    eager: float
    bf16_scores: float | None = None
    """PyTorch eager with bf16 scores: faster, fails the accuracy rule."""
    in_bf16: float | None = None
    """Our op for bf16 numbers, where ours is for int8."""
    compiled: float | None = None
    one_thread: float | None = None
    """Ours on one thread; timed where ours takes more than 1 ms on several."""
    clocked: float | None = None
    """Ours on one thread, with a clock around the top-k."""
    selecting: float | None = None
    """The part of that time that the top-k took."""
    no_op: float | None = None
    """A no-op, called like ours."""
    at_peak: float | None = None
    """The same work at the peak that was measured in the same rounds."""
    targets: Targets = field(default_factory=Targets)

    @property
    def name(self) -> str:
        """Op and size."""
        return f"{self.op} {self.size}"

    @property
    def fraction(self) -> float | None:
        """The fraction of the peak that ours reaches."""
        return None if self.at_peak is None else self.at_peak / self.ours

    @property
    def against_eager(self) -> float:
        """How many times longer torch eager takes."""
        return self.eager / self.ours

    @property
    def against_bf16_scores(self) -> float | None:
        """How many times longer torch eager with bf16 scores takes."""
        return None if self.bf16_scores is None else self.bf16_scores / self.ours

    @property
    def against_in_bf16(self) -> float | None:
        """How many times longer our op for bf16 numbers takes."""
        return None if self.in_bf16 is None else self.in_bf16 / self.ours

    @property
    def against_compiled(self) -> float | None:
        """How many times longer torch.compile takes."""
        return None if self.compiled is None else self.compiled / self.ours

    @property
    def against_one_thread(self) -> float | None:
        """How many times longer one thread takes."""
        return None if self.one_thread is None else self.one_thread / self.ours

    @property
    def selection(self) -> float | None:
        """The share of the time that the top-k takes."""
        if self.selecting is None or self.clocked is None:
            return None
        return self.selecting / self.clocked

    def to_json(self) -> dict[str, Any]:
        """Return the times and ratios."""
        return asdict(self) | {
            "fraction": self.fraction,
            "against_eager": self.against_eager,
            "against_bf16_scores": self.against_bf16_scores,
            "against_in_bf16": self.against_in_bf16,
            "against_compiled": self.against_compiled,
            "against_one_thread": self.against_one_thread,
            "selection": self.selection,
        }
