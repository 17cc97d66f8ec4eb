"""Runs programs that end, with all that they started, however this process ends; see `guard`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from . import guard
from .fork_locks import FIRST_USE

_GRACE_S = 1.0
_CHUNK = 1 << 16
_MOST_KEPT = 64 << 20
# The ends of pipes that this process alone may have.
_ours: set[int] = set()


def run(
    command: Sequence[str],
    *,
    time_limit: float | None = None,
    is_captured: bool = True,
    **options: Any,
) -> tuple[int | None, str, str]:
    """Run a program; return its status, or None if it took too long, its output and its errors.

    Without `is_captured` both go to this process's own, and are empty. The program's whole process
    group ends with it. `options` go to `subprocess.Popen`.

    Raises:
        OSError: this Python cannot be started.
    """
    process = None
    to = subprocess.PIPE if is_captured else None
    try:
        with lifeline() as pipe:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(pipe), *command],
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=to,
                pass_fds=[pipe],
                **options,
            )
            readers = [_Reader(each) for each in (process.stdout, process.stderr) if each]
            try:
                status: int | None = process.wait(time_limit)
            except subprocess.TimeoutExpired:
                status = None
    finally:
        if process is not None:
            process.wait()
    output, errors = [reader.text() for reader in readers] or ("", "")
    return status, output, errors


@contextmanager
def lifeline() -> Iterator[int]:
    """Return the pipe of a guard, which ends its child when this is left, or this process ends."""
    # No fork comes in between: a forked child must close the end that is ours.
    with FIRST_USE.lock:
        pipe, ours = os.pipe()
        _ours.add(ours)
    try:
        yield pipe
    finally:
        os.close(pipe)
        with FIRST_USE.lock:
            if ours in _ours:
                _ours.remove(ours)
                os.close(ours)


def _close_in_child() -> None:
    while _ours:
        os.close(_ours.pop())


os.register_at_fork(after_in_child=_close_in_child)


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that its writer never waits, and keeps the last bytes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._kept = bytearray()
        self.start()

    def run(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                self._kept += chunk
                del self._kept[:-_MOST_KEPT]

    def text(self) -> str:
        """Return what was read; call it after the child has ended."""
        # What the child wrote is in the pipe. A daemon that it started may keep the pipe open.
        self.join(_GRACE_S)
        return bytes(self._kept).decode("utf-8", "replace")
