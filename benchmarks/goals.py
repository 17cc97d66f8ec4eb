"""The goals of a run: the measured numbers against the targets of the cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks import lower_isa
from benchmarks.row import Row

MAX_BYTES = 64 * 2**20
MAX_SPREAD = 0.10
# Two threads against one, for calls that last longer than SHARED_SECONDS.
MIN_THREAD_SPEEDUP = 1.9
SHARED_SECONDS = 1e-3

Unit = Literal["", "x", "%", "us", "MiB"]
_SCALE = {"": 1.0, "x": 1.0, "%": 100.0, "us": 1e6, "MiB": 2.0**-20}


@dataclass(frozen=True)
class Goal:
    """A measured number, and the least or greatest that it may be."""

    of: str
    what: str
    bound: Literal[">=", "<="]
    target: float
    measured: float
    unit: Unit = ""
    at_peak: float | None = None
    """The number that ours would have at the peak: no target above it can be met."""

    @property
    def met(self) -> bool:
        """Whether the number is within its bound."""
        if self.bound == ">=":
            return self.measured >= self.target
        return self.measured <= self.target

    def show(self, value: float) -> str:
        """Return a number of this goal as text."""
        return f"{value * _SCALE[self.unit]:.4g}{self.unit and ' '}{self.unit}"


def goals(
    rows: list[Row], at_isa: list[Row], per_key: Mapping[int, float], memory: int | None
) -> Iterator[Goal]:
    """Yield the goals of everything that was measured."""
    for row in rows:
        yield from _goals_of(row)
    for row in rows:
        sharing = row.ratio("one_thread")
        if sharing is not None and row.ours > SHARED_SECONDS:
            what = f"{row.threads} threads against one"
            yield Goal(row.name, what, ">=", MIN_THREAD_SPEEDUP, sharing, "x")
    if per_key:
        what = "spread of the time per key, 8K to 256K keys"
        spread = max(per_key.values()) / min(per_key.values()) - 1
        yield Goal("npu_lightning_indexer_pto", what, "<=", MAX_SPREAD, spread, "%")
    if memory is not None:
        what = "memory beside inputs and outputs, B=32, 256K keys"
        yield Goal("npu_lightning_indexer_pto", what, "<=", MAX_BYTES, memory, "MiB")
    for row in at_isa:
        yield from _goals_of(row, prefix=f"{lower_isa.ISA}: ")
    fp32 = {row.op: row.ours for row in at_isa if row.size == lower_isa.FP32}
    for row in at_isa:
        if row.size == lower_isa.BF16:
            what = "fp32 inputs against bf16 inputs"
            yield Goal(f"{lower_isa.ISA}: {row.op}", what, ">=", 1, fp32[row.op] / row.ours, "x")


def _goals_of(row: Row, prefix: str = "") -> Iterator[Goal]:
    name, targets = prefix + row.name, row.targets
    if targets.fraction is not None and row.fraction is not None:
        yield Goal(name, "fraction of peak", ">=", targets.fraction, row.fraction)
    if targets.selection is not None and row.selection is not None:
        yield Goal(name, "share of the top-k", "<=", targets.selection, row.selection, "%")
    for other, text, ratio in (
        ("eager", "torch eager", targets.eager),
        ("compiled", "torch.compile", targets.compiled),
        ("in_bf16", "our op for bf16", targets.in_bf16),
    ):
        measured = row.ratio(other)
        if ratio is not None and measured is not None:
            at_peak = None if row.fraction is None else measured / row.fraction
            yield Goal(name, f"against {text}", ">=", ratio, measured, "x", at_peak)
    for other, text, longer in (
        ("no_op", "a no-op", targets.over_no_op),
        ("eager", "torch eager", targets.over_eager),
    ):
        if longer is not None and other in row.times:
            measured = row.ours - row.times[other]
            yield Goal(name, f"more than {text}", "<=", longer, measured, "us")
