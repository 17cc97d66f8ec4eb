"""A line on a terminal that says how far a command is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from custom_pypto_discovery.printable import escape

_WIDTH = 20
_LONGEST_NAME = 50
_CLEAR = "\x1b[2K\r"


@contextmanager
def shown(done: int, total: int, name: str) -> Iterator[None]:
    """Show a bar on standard error while `name` runs, after `done` of `total`.

    There is none where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    bar = ("#" * (_WIDTH * done // total)).ljust(_WIDTH, ".")
    line = f"[{bar}] {done + 1}/{total} {escape(name[:_LONGEST_NAME])}"
    print(line, end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(_CLEAR, end="", file=sys.stderr, flush=True)
