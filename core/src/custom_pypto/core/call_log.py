"""Logs calls of ops before they run, so that a crash leaves its arguments behind.

The log is written where Python calls an op. A kernel for a dispatch key would also see calls from
C++, but there is no key that every call has and that changes nothing else: kernels for autograd
decide about gradients, inference mode has no ADInplaceOrView, and dispatch modes belong to a
thread. Without CUSTOM_PYPTO_LOG this module is not imported, and calls do not change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from custom_pypto_discovery import environment

from custom_pypto.core.call_text import describe_argument
from custom_pypto.core.errors import warn
from custom_pypto.core.namespace import find_packet

# The classes of ops whose calls are logged have it.
_MARK = "_custom_pypto_logs_calls"


class CallLog:
    """The file that calls are logged to."""

    def __init__(self, target: str) -> None:
        """Open the file `target`; warn if that fails, and log nothing."""
        self._file: int | None = 2
        if target != environment.STANDARD_ERROR:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                self._file = os.open(target, flags, 0o666)
            except OSError as error:
                self._file = None
                warn(
                    f"{environment.LOG} is {target!r}, which cannot be opened: {error.strerror};"
                    " calls are not logged; set it to 1 for standard error, or to the path of a"
                    " file"
                )

    def watch(self, ops: Iterable[str]) -> None:
        """Log each call of `ops` from now on; harmless when called twice."""
        if self._file is None:
            return
        for op in ops:
            family, _, overload = op.partition(".")
            packet = find_packet(family)
            function = getattr(packet, overload or "default")
            names = [each.name for each in function._schema.arguments]
            self._extend(function, op, names)
            # torch chooses an overload only when the call runs.
            is_only_one = len(packet._overload_names) == 1
            self._extend(packet, family, names if is_only_one else [])

    def _extend(self, function: Any, op: str, names: Sequence[str]) -> None:
        """Have `function` log its calls; the object stays the same, because others may hold it."""
        kind = type(function)
        if hasattr(kind, _MARK):
            return

        def call(self_: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._write(op, names, args, kwargs)
            return kind.__call__(self_, *args, **kwargs)

        # Named as torch's class, because that name is printed.
        members = {"__call__": call, "__doc__": None, "__module__": kind.__module__, _MARK: True}
        function.__class__ = type(kind.__name__, (kind,), members)

    def _write(
        self, op: str, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        assert self._file is not None
        # A mode of the user must not see that tensors are described.
        with torch._C.DisableTorchFunction():
            positional = [
                f"{names[index]}={_describe(value)}" if index < len(names) else _describe(value)
                for index, value in enumerate(args)
            ]
            keywords = [f"{name}={_describe(value)}" for name, value in kwargs.items()]
        thread = f"{os.getpid()}.{threading.get_native_id()}"
        line = f"custom_pypto[{thread}] {op}({', '.join([*positional, *keywords])})\n"
        # One write for a line: lines of several threads and processes do not mix, and no buffer is
        # lost in a crash.
        try:
            os.write(self._file, line.encode(errors="backslashreplace"))
        except OSError:
            # The disk is full, or the reader of a pipe has gone. The op runs all the same.
            self._file = None


def _describe(value: Any) -> str:
    try:
        return describe_argument(value)
    except Exception as error:
        # A tensor subclass may refuse anything.
        return f"<{type(value).__name__}: {type(error).__name__}>"
