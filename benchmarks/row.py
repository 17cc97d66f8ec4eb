"""What was measured of one case."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.case import Reach


@dataclass(frozen=True)
class Row:
    """The medians of one case in seconds; None: not timed."""

    op: str
    size: str
    threads: int
    ours: float
    eager: float
    rounded: float | None = None
    """Torch eager that rounds scores, so that its result is not good enough."""
    compiled: float | None = None
    one_thread: float | None = None
    """Ours on one thread; timed where ours takes more than 1 ms on several."""
    clocked: float | None = None
    """Ours on one thread, with a clock around the top-k."""
    selecting: float | None = None
    """Of that time, what the clock showed."""
    nothing: float | None = None
    """An op that does nothing, called like ours."""
    at_peak: float | None = None
    """The same work at the peak, as fast as that was in the same rounds."""
    reach: Reach = field(default_factory=Reach)

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
    def against_rounded(self) -> float | None:
        """How many times longer torch eager takes that rounds scores."""
        return None if self.rounded is None else self.rounded / self.ours

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
        """Return the times, and what follows from them."""
        return asdict(self) | {
            "fraction": self.fraction,
            "against_eager": self.against_eager,
            "against_rounded": self.against_rounded,
            "against_compiled": self.against_compiled,
            "against_one_thread": self.against_one_thread,
            "selection": self.selection,
        }
