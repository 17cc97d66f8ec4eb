"""A file to which several threads and processes add lines of calls."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress

from custom_pypto_contract import small_file

from custom_pypto.core.errors import PluginWarning, logger, warn

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
                if _end_of(self._file, 1)[1] not in (b"", b"\n"):
                    # Somebody was ended in the middle of a line.
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
                self.end(f"it cannot be written: {error.strerror}")

    def end(self, reason: str) -> None:
        """Write a last line where that is possible, close the file, and warn."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                _write(file, json.dumps({"ended": reason, "process": os.getpid()}))
            if file > 2:
                os.close(file)
        text = f"{self._variable}={self._path or 1}: {reason}; no further calls are written there"
        try:
            warn(text)
        except PluginWarning:
            # Warnings are errors, and no call may fail for this.
            logger.error("%s", text)


def _write(file: int, line: str) -> None:
    rest = data = f"{line}\n".encode()
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        half = data[: -len(rest)]
        # Take it back. Standard error is not ours, and a process that was forked may have added to
        # the file, whose place it shares.
        start, last = _end_of(file, len(half))
        if half and half == last and file > 2:
            with suppress(OSError):
                os.ftruncate(file, start)
        raise


def _end_of(file: int, count: int) -> tuple[int, bytes]:
    """Return the last bytes of a file, and where they begin; none if it cannot be read."""
    # `file` is open for writing alone.
    path = f"/proc/self/fd/{file}"
    with suppress(OSError), os.fdopen(small_file.open_regular(path), "rb") as again:
        start = again.seek(max(0, again.seek(0, os.SEEK_END) - count))
        return start, again.read()
    return 0, b""
