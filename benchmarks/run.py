"""A run of a benchmark: its rows and goals, printed and written as they come; its processes."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar
from unittest import mock

from custom_pypto_testing.timing.measured import (
    Columns,
    Measured,
    describe_machine,
    table_heading,
    table_line,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Goal:
    """A measured number, and the least or the greatest that it should be."""

    of: str
    measured: float
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        """The goal as a line of a table."""
        bound = f"<= {self.most:g}" if self.least is None else f">= {self.least:g}"
        return f"{self.of:<90}{bound:>10}{self.measured:>10.3g}  {'yes' if self.is_met else 'NO'}"

    @property
    def is_met(self) -> bool:
        """Whether the number is within its bound."""
        if self.least is not None:
            return self.measured >= self.least
        return self.most is None or self.measured <= self.most


class Run:
    """What is measured goes to standard output and, after each row, into a JSON file."""

    def __init__(self, output: Path, **details: object) -> None:
        """Print the machine and further `details`."""
        self.rows: list[Measured] = []
        self.goals: list[Goal] = []
        self._file = output
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._machine = describe_machine() | details
        self._columns: Columns = {}
        print(" · ".join(f"{name} {value}" for name, value in self._machine.items()), flush=True)

    def begin(self, title: str, columns: Columns) -> None:
        """Begin a table."""
        self._columns = columns
        print(f"\n{title}\n{table_heading(columns)}", flush=True)

    def add(self, row: Measured) -> None:
        """Add a row to the table. A run that is interrupted keeps it."""
        self.rows.append(row)
        print(table_line(self._columns, row), flush=True)
        self._save()

    def add_goal(self, of: str, measured: float | None, **bound: float | None) -> None:
        """Add a goal, if it has a bound and was measured."""
        if measured is not None and any(each is not None for each in bound.values()):
            self.goals.append(Goal(of, measured, **bound))

    def end(self) -> None:
        """Print the goals, and write them."""
        if self.goals:
            print(f"\n{'goal':<90}{'target':>10}{'measured':>10}  met", *self.goals, sep="\n")
        self._save()
        print(f"\nwritten: {self._file}")

    def _save(self) -> None:
        document = {
            "machine": self._machine,
            "unit": "seconds: lower quartile, median, upper quartile",
            "results": [asdict(row) for row in self.rows],
            "goals": [asdict(goal) | {"met": goal.is_met} for goal in self.goals],
        }
        # The file has all or nothing of them.
        part = self._file.with_suffix(".json.part")
        part.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        part.replace(self._file)


class Worker:
    """Calls functions in a process of its own, one after another; it takes no time in between."""

    def __init__(self, **variables: str) -> None:
        """`variables` are added to the environment, before the process imports anything."""
        self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        with mock.patch.dict(os.environ, variables):
            self.call(int)

    def __enter__(self) -> Worker:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._process.shutdown()

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what a function of a module returns there.

        Raises BrokenProcessPool when the process has ended.
        """
        return self._process.submit(function, *arguments).result()


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark, with --output."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks.{name}", description=(description or "").split("\n")[0]
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build", "benchmark", f"{name}.json"),
        metavar="FILE",
        help="where to write (default: %(default)s)",
    )
    return parser
