"""Shows calls of ops to the log and the record before they run.

A kernel in Python covers each kernel of a plugin. So calls from C++, from compiled graphs and from
autograd are seen as well as calls from Python. Kernels for CompositeImplicitAutograd are not
covered: torch also calls them without the dispatcher. The ops that they call are seen. Unless
CUSTOM_PYPTO_LOG or CUSTOM_PYPTO_RECORD is set, this module is not imported.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from custom_pypto_contract.dispatch_keys import BACKEND_KEYS, DEVICE_KEYS
from custom_pypto_contract.variables import LOG
from custom_pypto_discovery.environment import STANDARD_ERROR, Environment
from custom_pypto_discovery.printable import printable

from custom_pypto.core import dispatcher
from custom_pypto.core.call_file import CallFile
from custom_pypto.core.call_record import CallRecord
from custom_pypto.core.call_text import describe_argument
from custom_pypto.core.records import NAMESPACE, OpRecord


class CallLog:
    """The file that calls are logged to."""

    def __init__(self, target: str) -> None:
        self._file = CallFile(LOG, "" if target == STANDARD_ERROR else target)

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


class WatchedKernels:
    """Covers kernels with kernels that show each call to the log, the record or both."""

    def __init__(self, settings: Environment) -> None:
        self._watchers: list[CallLog | CallRecord] = []
        if settings.log:
            self._watchers.append(CallLog(settings.log))
        if settings.record:
            self._watchers.append(CallRecord(settings.record))

    def cover(self, ops: Iterable[OpRecord]) -> Callable[[], None]:
        """Cover the kernels of `ops`; return the function that uncovers them."""
        library = torch.library.Library(NAMESPACE, "IMPL")  # type: ignore[no-untyped-call]
        for op in ops:
            for key in BACKEND_KEYS:
                if key in op.dispatch_keys:
                    self._cover(library, op, key)
        return library._destroy

    def _cover(self, library: torch.library.Library, op: OpRecord, key: str) -> None:
        schema = dispatcher.schema_of(op.name)
        kernel = torch.library.get_kernel(f"{NAMESPACE}::{op.name}", _runtime_key(key, op))

        def show(keys: torch.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
            for watcher in self._watchers:
                watcher.see(op.name, schema, args, kwargs)
            return kernel.call_boxed(keys, *args, **kwargs)

        with warnings.catch_warnings():
            # torch warns of a kernel that replaces another.
            warnings.simplefilter("ignore")
            library.impl(op.name, show, key, with_keyset=True)  # type: ignore[no-untyped-call]


def _runtime_key(key: str, op: OpRecord) -> str:
    """Return a key for which the kernel of `key`, which may stand for many keys, is called."""
    if not key.startswith("Composite"):
        return key
    return next(each for each in DEVICE_KEYS if each not in op.dispatch_keys)
