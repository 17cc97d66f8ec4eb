"""A run of a benchmark: its rows, printed and written as they come; its processes."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
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


class Run:
    """What is measured goes to standard output, and as a line of JSON into a file."""

    def __init__(self, output: Path, **details: object) -> None:
        """Print the machine and further `details`."""
        output.parent.mkdir(parents=True, exist_ok=True)
        self._file = output
        self._columns: Columns = {}
        machine = describe_machine() | details
        output.write_text(json.dumps(machine) + "\n", encoding="utf-8")
        print(" · ".join(f"{name} {value}" for name, value in machine.items()), flush=True)

    def begin(self, title: str, columns: Columns) -> None:
        """Begin a table."""
        self._columns = columns
        print(f"\n{title}\n{table_heading(columns)}", flush=True)

    def add(self, row: Measured) -> None:
        """Add a row to the table. A run that is interrupted keeps it."""
        print(table_line(self._columns, row), flush=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def end(self) -> None:
        """Say where the rows are."""
        print(f"\nwritten: {self._file}")


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


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add --output, the file of a `Run`; its default is named for the benchmark."""
    default = Path("build", f"{parser.prog}.jsonl")
    text = "the file of the rows, as lines of JSON (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=default, metavar="FILE", help=text)
