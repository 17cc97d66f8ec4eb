"""A run as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.fused_steps import FusedSteps
from benchmarks.goals import Goal, goals
from benchmarks.peak import READING
from benchmarks.row import Row
from benchmarks.time_per_key import TimePerKey

HEADING = (
    f"{'op':<28}{'size':<36}{'ours':>11}{'of peak':>9}{'eager':>11}{'compile':>11}"
    f"{'eager/ours':>12}{'bf16 scores/ours':>18}{'compile/ours':>14}"
    f"{'1 thread/ours':>15}{'top-k':>8}"
)


@dataclass
class Run:
    """Everything that a run measured."""

    machine: dict[str, str | int]
    peaks: dict[int, dict[str, float]]
    """By number of threads, by yardstick: operations or bytes per second."""
    rows: list[Row] = field(default_factory=list)
    fused_steps: FusedSteps | None = None
    time_per_key: TimePerKey | None = None
    memory: int | None = None
    at_isa: list[Row] = field(default_factory=list)

    @property
    def goals(self) -> list[Goal]:
        """The goals of everything that was measured."""
        return list(goals(self.rows, self.at_isa, self.time_per_key, self.memory))

    def to_json(self) -> str:
        """Return everything, times in seconds."""
        steps = None if self.fused_steps is None else asdict(self.fused_steps)
        per_key = None if self.time_per_key is None else self.time_per_key.seconds
        document: dict[str, Any] = {
            "machine": self.machine,
            "unit": "seconds",
            "peaks": self.peaks,
            "results": [row.to_json() for row in self.rows],
            "fused_steps": steps,
            "time_per_key": per_key,
            "memory": self.memory,
            "avx2": [row.to_json() for row in self.at_isa],
            "goals": [asdict(goal) | {"met": goal.met} for goal in self.goals],
        }
        return json.dumps(document, indent=2)


def about(run: Run) -> Iterator[str]:
    """Yield the machine, and the peaks by number of threads."""
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
        f"{ratio(row.against_eager):>12}{ratio(row.against_bf16_scores):>18}"
        f"{ratio(row.against_compiled):>14}"
        f"{ratio(row.against_one_thread):>15}{percent(row.selection):>8}"
    )


def fused_steps(measured: FusedSteps) -> Iterator[str]:
    """Yield the table of the fused op's steps."""
    yield f"npu_sparse_attention_pto, {measured.size}: its steps, called one by one"
    for step in measured.steps:
        share = step.seconds / measured.whole
        yield (
            f"  {step.name:<16}{duration(step.seconds):>11}{percent(share):>8}"
            f"{_number(step.fraction):>9}"
        )
    remaining = measured.remaining
    share = remaining / measured.whole
    yield f"  {'not covered':<16}{duration(remaining):>11}{percent(share):>8}"
    yield f"  {'the fused op':<16}{duration(measured.whole):>11}"


def time_per_key(measured: TimePerKey) -> Iterator[str]:
    """Yield the table of the time per key."""
    yield "npu_lightning_indexer_pto, B=4 S1=1: time per key"
    for keys, seconds in measured.seconds.items():
        yield f"  {keys // 1024:>4}K keys {seconds * 1e9:8.3f} ns"


def goal_table(found: Iterable[Goal]) -> Iterator[str]:
    """Yield the table of goals."""
    yield f"{'goal':<108}{'target':>14}{'measured':>12}{'at peak':>12}  met"
    for goal in found:
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
