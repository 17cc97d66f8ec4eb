"""A run as text for people and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.growth import Growth
from benchmarks.peak import READING
from benchmarks.pieces import Pieces
from benchmarks.reach import Goal, goals
from benchmarks.row import Row

HEADING = (
    f"{'op':<28}{'size':<36}{'ours':>11}{'of peak':>9}{'eager':>11}{'compile':>11}"
    f"{'eager/ours':>12}{'rounded/ours':>14}{'compile/ours':>14}"
    f"{'1 thread/ours':>15}{'top-k':>8}"
)


@dataclass
class Run:
    """Everything that a run measured."""

    machine: dict[str, str | int]
    peaks: dict[int, dict[str, float]]
    """By number of threads, by yardstick: operations or bytes per second."""
    rows: list[Row] = field(default_factory=list)
    pieces: Pieces | None = None
    growth: Growth | None = None
    memory: int | None = None
    at_isa: list[Row] = field(default_factory=list)

    @property
    def goals(self) -> list[Goal]:
        """The goals that the run can tell of."""
        return list(goals(self.rows, self.at_isa, self.growth, self.memory))

    def to_json(self) -> str:
        """Return everything, times in seconds."""
        pieces = None if self.pieces is None else asdict(self.pieces)
        document: dict[str, Any] = {
            "machine": self.machine,
            "unit": "seconds",
            "peaks": self.peaks,
            "results": [row.to_json() for row in self.rows],
            "pieces": pieces,
            "growth": None if self.growth is None else self.growth.per_key,
            "memory": self.memory,
            "avx2": [row.to_json() for row in self.at_isa],
            "reach": [asdict(goal) | {"met": goal.met} for goal in self.goals],
        }
        return json.dumps(document, indent=2)


def about(run: Run) -> Iterator[str]:
    """Say where the run was taken, and the peaks by number of threads."""
    yield " · ".join(f"{name} {value}" for name, value in run.machine.items())
    for threads, peaks in run.peaks.items():
        texts = (
            f"{name} {rate / 1e9:.0f} {'GB/s' if name == READING else 'GFLOP/s'}"
            for name, rate in peaks.items()
        )
        yield f"peak, {threads} thread{'s' if threads > 1 else ''}: " + " · ".join(texts)


def line(row: Row) -> str:
    """Return a row of the table under HEADING."""
    return (
        f"{row.op:<28}{row.size:<36}{duration(row.ours):>11}{_number(row.fraction):>9}"
        f"{duration(row.eager):>11}{duration(row.compiled):>11}"
        f"{ratio(row.against_eager):>12}{ratio(row.against_rounded):>14}"
        f"{ratio(row.against_compiled):>14}"
        f"{ratio(row.against_one_thread):>15}{percent(row.selection):>8}"
    )


def pieces(measured: Pieces) -> Iterator[str]:
    """Say where the fused op's time goes."""
    yield f"npu_sparse_attention_pto, {measured.size}: its steps, called one by one"
    for piece in measured.pieces:
        share = piece.seconds / measured.whole
        yield (
            f"  {piece.name:<16}{duration(piece.seconds):>11}{percent(share):>8}"
            f"{_number(piece.fraction):>9}"
        )
    remaining = measured.remaining
    share = remaining / measured.whole
    yield f"  {'not covered':<16}{duration(remaining):>11}{percent(share):>8}"
    yield f"  {'the fused op':<16}{duration(measured.whole):>11}"


def growth(measured: Growth) -> Iterator[str]:
    """Say how the time per key grows."""
    yield "npu_lightning_indexer_pto, B=4 S1=1: time per key"
    for keys, seconds in measured.per_key.items():
        yield f"  {keys // 1024:>4}K keys {seconds * 1e9:8.3f} ns"


def reach(met: Iterable[Goal]) -> Iterator[str]:
    """Return the table of goals."""
    yield f"{'goal':<108}{'target':>14}{'measured':>12}{'at peak':>12}  met"
    for goal in met:
        yield (
            f"{goal.of + ', ' + goal.what:<108}"
            f"{goal.bound + ' ' + goal.show(goal.target):>14}{goal.show(goal.measured):>12}"
            f"{'-' if goal.at_peak is None else goal.show(goal.at_peak):>12}"
            f"  {'yes' if goal.met else 'NO'}"
        )


def duration(seconds: float | None) -> str:
    """Return a time as text."""
    if seconds is None:
        return "-"
    size = abs(seconds)
    if size < 1e-5:
        return f"{seconds * 1e6:.2f} us"
    if size < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if size < 1 else f"{seconds:.2f} s"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def ratio(value: float | None) -> str:
    """Return how many times longer something takes, as text."""
    return "-" if value is None else f"{value:.2f}x"


def percent(value: float | None) -> str:
    """Return a share as text."""
    return "-" if value is None else f"{value * 100:.1f}%"
