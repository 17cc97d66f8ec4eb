"""A file to which several threads and processes add lines of calls."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress

from custom_pypto.core.errors import warn_or_log

# Nobody else may read the file. A pipe that nobody reads is an error.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class CallFile:
    """Whole lines at the end of a file. After the first failure it warns, and takes no more."""

    def __init__(self, variable: str, path: str) -> None:
        """Open the file that `variable` names; '' is standard error."""
        self._variable, self._path = variable, path
        self._file: int | None = None
        self._make_lock()
        os.register_at_fork(after_in_child=self._make_lock)
        try:
            self._file = os.open(path, _FLAGS, 0o600) if path else 2
            if path:
                os.set_blocking(self._file, True)
                with suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY), "rb") as again:
                    again.seek(-1, os.SEEK_END)
                    if again.read() != b"\n":
                        # A process was ended in the middle of a line.
                        os.write(self._file, b"\n")
        except OSError as error:
            remedy = "set it to a file that you can write, or to 0"
            self.end(f"it cannot be opened: {error.strerror}; {remedy}")

    def _make_lock(self) -> None:
        # A process that was forked may have one that a thread held, now gone. A handler of a signal
        # may call an op while this thread has the lock.
        self.lock = threading.RLock()

    @property
    def is_open(self) -> bool:
        """Whether it takes lines."""
        return self._file is not None

    def add(self, line: str) -> None:
        """Write a line: with one write, so that lines do not mix, and a crash loses none."""
        with self.lock:
            if self._file is None:
                return
            try:
                _write(self._file, line)
            except OSError as error:
                # The disk is full, or the reader of a pipe has gone. The op runs all the same.
                with suppress(OSError):
                    # There may be half a line.
                    os.write(self._file, b"\n")
                self.end(f"it cannot be written: {error.strerror}")

    def end(self, reason: str) -> None:
        """Write a last line where that is possible, close the file, and warn."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                _write(file, json.dumps({"ended": reason, "process": os.getpid()}))
            if file > 2:
                os.close(file)
        # No call may fail for this.
        name = f"{self._variable}={self._path or 1}"
        warn_or_log(f"{name}: {reason}; no further calls are written there")


def _write(file: int, line: str) -> None:
    rest = f"{line}\n".encode()
    while rest:
        rest = rest[os.write(file, rest) :]
