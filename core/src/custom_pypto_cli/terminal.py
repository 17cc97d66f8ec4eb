"""The output of commands; text of a plugin can neither act on the terminal nor stop a command."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from itertools import zip_longest

from custom_pypto_discovery.printable import escape_lines, printable, shorten


def accept_any_text() -> None:
    """Have both standard streams print escapes for what their encoding lacks, not raise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print `text` to standard output; its newlines are the caller's layout, and stay."""
    print(escape_lines(text))


def show_error(text: str) -> None:
    """Do the same to standard error, with a text that may quote anything."""
    print(escape_lines(shorten(text)), file=sys.stderr)


def show_json(value: object) -> None:
    """Print `value` as JSON, in ASCII."""
    # The only control character that json does not escape; it occurs in strings only.
    print(json.dumps(value, indent=2).replace("\x7f", r"\u007f"))


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line for each row, with printable cells in columns aligned to the left.

    Rows may differ in length; the last cell of a row never widens a column, and no line ends in
    blanks.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    columns = zip_longest(*(row[:-1] for row in rows), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join([*(cell.ljust(widths[i]) for i, cell in enumerate(row[:-1])), *row[-1:]]).rstrip()
        for row in rows
    ]
