"""Logs calls of ops before they run, so that a crash leaves its arguments behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from custom_pypto_discovery import environment
from custom_pypto_discovery.printable import printable

from custom_pypto.core.call_file import open_to_add
from custom_pypto.core.call_text import describe_argument
from custom_pypto.core.errors import warn


class CallLog:
    """The file that calls are logged to."""

    def __init__(self, target: str) -> None:
        """Open the file `target`; warn if that fails, and log nothing."""
        self._file: int | None = 2
        if target != environment.STANDARD_ERROR:
            try:
                self._file = open_to_add(target)
            except OSError as error:
                self._file = None
                warn(
                    f"{environment.LOG} is {target!r}, which cannot be opened: {error.strerror};"
                    " calls are not logged; set it to 1 for standard error, or to the path of a"
                    " file"
                )

    def see(
        self, op: str, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Log a call."""
        if self._file is None:
            return
        positional = [
            f"{names[index]}={_describe(value)}" if index < len(names) else _describe(value)
            for index, value in enumerate(args)
        ]
        keywords = [f"{name}={_describe(value)}" for name, value in kwargs.items()]
        thread = f"{os.getpid()}.{threading.get_native_id()}"
        # Names of arguments and of classes are the caller's text, too.
        line = printable(f"custom_pypto[{thread}] {op}({', '.join([*positional, *keywords])})")
        # One write for a line: lines of several threads and processes do not mix, and no buffer is
        # lost in a crash.
        try:
            os.write(self._file, f"{line}\n".encode())
        except OSError:
            # The disk is full, or the reader of a pipe has gone. The op runs all the same.
            self._file = None


def _describe(value: Any) -> str:
    try:
        return describe_argument(value)
    except Exception as error:
        # A tensor subclass may refuse anything.
        return f"<{type(value).__name__}: {type(error).__name__}>"
