"""The output of commands; text of a plugin can neither act on the terminal nor stop a command."""

from __future__ import annotations

import io
import json
import sys

from custom_pypto_discovery.printable import escape_lines, shorten


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
