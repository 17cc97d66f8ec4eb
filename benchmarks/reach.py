"""The goals of issue 4, and which of them a run meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks import one_isa
from benchmarks.growth import Growth
from benchmarks.row import Row

MOST_BYTES = 64 * 2**20
MOST_SPREAD = 0.10
# Two threads against one, where one call is long enough to share.
LEAST_SHARING = 1.9
WORTH_SHARING = 1e-3

Unit = Literal["", "x", "%", "us", "MiB"]
_SCALE = {"": 1.0, "x": 1.0, "%": 100.0, "us": 1e6, "MiB": 2.0**-20}


@dataclass(frozen=True)
class Goal:
    """A number that must be at least, or at most, another."""

    of: str
    what: str
    bound: Literal[">=", "<="]
    target: float
    measured: float
    unit: Unit = ""
    at_peak: float | None = None
    """What would be measured if ours ran at the peak: no target above it can be met."""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        if self.bound == ">=":
            return self.measured >= self.target
        return self.measured <= self.target

    def show(self, value: float) -> str:
        """Return a number of this goal as text."""
        return f"{value * _SCALE[self.unit]:.4g}{self.unit and ' '}{self.unit}"


def goals(
    rows: list[Row], at_isa: list[Row], growth: Growth | None, memory: int | None
) -> Iterator[Goal]:
    """Yield the goals that the measured numbers can tell of."""
    for row in rows:
        yield from _of(row)
    for row in rows:
        sharing = row.against_one_thread
        if sharing is not None and row.ours > WORTH_SHARING:
            what = f"{row.threads} threads against one"
            yield Goal(row.name, what, ">=", LEAST_SHARING, sharing, "x")
    if growth is not None:
        what = "spread of the time per key, 8K to 256K keys"
        yield Goal("npu_lightning_indexer_pto", what, "<=", MOST_SPREAD, growth.spread, "%")
    if memory is not None:
        what = "memory beside inputs and outputs, B=32, 256K keys"
        yield Goal("npu_lightning_indexer_pto", what, "<=", MOST_BYTES, memory, "MiB")
    for row in at_isa:
        yield from _of(row, prefix=f"{one_isa.ISA}: ")
    fp32 = {row.op: row.ours for row in at_isa if row.size == one_isa.FP32}
    for row in at_isa:
        if row.size == one_isa.BF16:
            what = "fp32 inputs against bf16 inputs"
            yield Goal(f"{one_isa.ISA}: {row.op}", what, ">=", 1, fp32[row.op] / row.ours, "x")


def _of(row: Row, prefix: str = "") -> Iterator[Goal]:
    name, reach = prefix + row.name, row.reach
    if reach.fraction is not None and row.fraction is not None:
        yield Goal(name, "fraction of peak", ">=", reach.fraction, row.fraction)
    if reach.selection is not None and row.selection is not None:
        yield Goal(name, "share of the top-k", "<=", reach.selection, row.selection, "%")
    if reach.eager is not None:
        yield _ratio(row, name, "torch eager", reach.eager, row.against_eager)
    if reach.compiled is not None and row.against_compiled is not None:
        yield _ratio(row, name, "torch.compile", reach.compiled, row.against_compiled)
    if reach.over_nothing is not None and row.nothing is not None:
        what = "more than an op that does nothing"
        yield Goal(name, what, "<=", reach.over_nothing, row.ours - row.nothing, "us")
    if reach.behind_eager is not None:
        what = "more than torch eager"
        yield Goal(name, what, "<=", reach.behind_eager, row.ours - row.eager, "us")


def _ratio(row: Row, name: str, other: str, target: float, measured: float) -> Goal:
    at_peak = None if row.fraction is None else measured / row.fraction
    return Goal(name, f"against {other}", ">=", target, measured, "x", at_peak)
