"""A run of a benchmark: its rows, printed and written as they come."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from custom_pypto_testing.timing.measured import (
    Columns,
    Measured,
    describe_machine,
    table_heading,
    table_line,
)


class Run:
    """A table on standard output, and each row as a line of JSON in a file."""

    def __init__(self, output: Path, title: str, columns: Columns, **details: object) -> None:
        """Print where the rows are written, the machine with further `details`, and the heading."""
        output.parent.mkdir(parents=True, exist_ok=True)
        self._file = output
        self._columns = columns
        machine = describe_machine() | details
        output.write_text(json.dumps(machine) + "\n", encoding="utf-8")
        print(f"written: {output}")
        print(" · ".join(f"{name} {value}" for name, value in machine.items()))
        print(f"\n{title}\n{table_heading(columns)}", flush=True)

    def add(self, row: Measured) -> None:
        """Add a row. A run that is interrupted keeps it."""
        print(table_line(self._columns, row), flush=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add --output, the file of a `Run`; its default is named for the benchmark."""
    default = Path("build", f"{parser.prog}.jsonl")
    text = "the file of the rows, as lines of JSON (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=default, metavar="FILE", help=text)
