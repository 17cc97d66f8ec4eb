"""Estimates the time and memory of a cell from a smaller one, and refuses too large cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import process_memory
from benchmarks.transformers.cell import Cell

# For one pass; each cell takes three or more.
LONGEST_SECONDS = 150.0
# Other programs of the machine keep this much.
_SPARE_BYTES = 2**30


@dataclass(frozen=True)
class Cost:
    """The seconds and bytes that a cell took."""

    cell: Cell
    seconds: float
    bytes: int

    def refusal(
        self, larger: Cell, available: Callable[[], int] = process_memory.available
    ) -> str | None:
        """Return why a larger cell of the same phase must not run; None: it may."""
        tokens = (larger.context / self.cell.context) ** larger.growth_exponent
        factor = tokens * larger.batch / self.cell.batch
        needed = factor * self.bytes
        if needed > available() - _SPARE_BYTES:
            return f"needs {needed / 2**30:.0f} GiB"
        if factor * self.seconds > LONGEST_SECONDS:
            return f"takes {factor * self.seconds / 60:.0f} min"
        return None
