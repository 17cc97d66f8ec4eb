"""A run as tables and as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fused_steps import FusedSteps
from benchmarks.goals import Goal, goals
from benchmarks.peak import READING
from benchmarks.row import Row


@dataclass
class Run:
    """Everything that a run measured."""

    machine: dict[str, str | int]
    peaks: dict[int, dict[str, float]]
    """By number of threads, by yardstick: operations or bytes per second."""
    rows: list[Row] = field(default_factory=list)
    fused_steps: FusedSteps | None = None
    time_per_key: dict[int, float] = field(default_factory=dict)
    memory: int | None = None
    at_isa: list[Row] = field(default_factory=list)

    @property
    def goals(self) -> list[Goal]:
        """The goals of everything that was measured."""
        return list(goals(self.rows, self.at_isa, self.time_per_key, self.memory))

    def to_json(self) -> dict[str, Any]:
        """Return everything but the goals, times in seconds."""
        return {
            "machine": self.machine,
            "unit": "seconds",
            "peaks": self.peaks,
            "results": [row.to_json() for row in self.rows],
            "fused_steps": self.fused_steps and asdict(self.fused_steps),
            "time_per_key": self.time_per_key,
            "memory": self.memory,
            "avx2": [row.to_json() for row in self.at_isa],
        }


def add_output(parser: argparse.ArgumentParser, name: str) -> None:
    """Add --output, which `write` takes."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build", "benchmark", name),
        metavar="PATH",
        help="where to write PATH.json, and PATH.png if there is a picture (default: %(default)s)",
    )


def write(
    output: Path, results: dict[str, Any], goals: Iterable[Goal], draw: Callable[[Path], None]
) -> None:
    """Print the goals, and write results and goals to JSON, and the picture that `draw` makes."""
    print()
    show(goal_table(goals))
    picture = output.with_suffix(".png")
    written = save(output, results, goals)
    draw(picture)
    print(f"\nwritten: {written}, {picture}")


def save(output: Path, results: dict[str, Any], goals: Iterable[Goal]) -> Path:
    """Write results and goals to JSON, and return the file: it has all or nothing of them."""
    document = results | {"goals": [asdict(goal) | {"met": goal.met} for goal in goals]}
    output.parent.mkdir(parents=True, exist_ok=True)
    part, whole = output.with_suffix(".json.part"), output.with_suffix(".json")
    part.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return part.replace(whole)


def show(lines: Iterable[str]) -> None:
    """Print lines as they come."""
    for text in lines:
        print(text, flush=True)


def describe_machine(machine: Mapping[str, str | int]) -> str:
    """Return a line on the machine."""
    return " · ".join(f"{name} {value}" for name, value in machine.items())


def peaks(measured: Mapping[int, Mapping[str, float]]) -> Iterator[str]:
    """Yield a line of peaks for each number of threads."""
    for threads, rates in measured.items():
        texts = (
            f"{name} {rate / 1e9:.0f} {'GB/s' if name == READING else 'GFLOP/s'}"
            for name, rate in rates.items()
        )
        yield f"peak, {threads} thread{'s' if threads > 1 else ''}: " + " · ".join(texts)


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


_COLUMNS: tuple[tuple[str, int, Callable[[Row], str]], ...] = (
    ("ours", 11, lambda row: duration(row.ours)),
    ("of peak", 9, lambda row: _number(row.fraction)),
    ("eager", 11, lambda row: duration(row.times["eager"])),
    ("compile", 11, lambda row: duration(row.times.get("compiled"))),
    ("eager/ours", 12, lambda row: ratio(row.ratio("eager"))),
    ("bf16 scores/ours", 18, lambda row: ratio(row.ratio("bf16_scores"))),
    ("compile/ours", 14, lambda row: ratio(row.ratio("compiled"))),
    ("1 thread/ours", 15, lambda row: ratio(row.ratio("one_thread"))),
    ("top-k", 8, lambda row: percent(row.selection)),
)
HEADING = f"{'op':<28}{'size':<36}" + "".join(f"{name:>{width}}" for name, width, _ in _COLUMNS)


def line(row: Row) -> str:
    """Return a row of the table under HEADING."""
    cells = "".join(f"{text(row):>{width}}" for _, width, text in _COLUMNS)
    return f"{row.op:<28}{row.size:<36}{cells}"


def fused_steps(measured: FusedSteps) -> Iterator[str]:
    """Yield the table of the fused op's steps."""
    yield f"npu_sparse_attention_pto, {measured.size}: its steps, called one by one"
    for step in measured.steps:
        yield _part(step.name, step.seconds, measured.whole) + f"{_number(step.fraction):>9}"
    yield _part("not covered", measured.remaining, measured.whole)
    yield f"  {'the fused op':<16}{duration(measured.whole):>11}"


def _part(name: str, seconds: float, whole: float) -> str:
    return f"  {name:<16}{duration(seconds):>11}{percent(seconds / whole):>8}"


def time_per_key(measured: Mapping[int, float]) -> Iterator[str]:
    """Yield the table of the time per key."""
    yield "npu_lightning_indexer_pto, B=4 S1=1: time per key"
    for keys, seconds in measured.items():
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
