"""Logs calls of ops before they run, so that a crash leaves its arguments behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from custom_pypto_discovery import environment
from custom_pypto_discovery.printable import printable

from custom_pypto.core.call_file import CallFile
from custom_pypto.core.call_text import describe_argument


class CallLog:
    """The file that calls are logged to."""

    def __init__(self, target: str) -> None:
        path = "" if target == environment.STANDARD_ERROR else target
        self._file = CallFile(environment.LOG, path)

    def see(self, op: str, schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Log a call."""
        if not self._file.is_open:
            return
        positional = zip((each.name for each in schema.arguments), args, strict=False)
        given = [f"{name}={_describe(value)}" for name, value in [*positional, *kwargs.items()]]
        thread = f"{os.getpid()}.{threading.get_native_id()}"
        # Names of classes are the caller's text.
        self._file.add(printable(f"custom_pypto[{thread}] {op}({', '.join(given)})"))


def _describe(value: Any) -> str:
    try:
        return describe_argument(value)
    except Exception as error:
        # A tensor subclass may refuse anything.
        return f"<{type(value).__name__}: {type(error).__name__}>"
