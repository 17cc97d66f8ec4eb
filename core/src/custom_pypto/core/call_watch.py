"""Shows calls of ops to others before they run.

Calls are seen where Python calls an op. A kernel for a dispatch key would also see calls from C++,
but there is no key that every call has and that changes nothing else: kernels for autograd decide
about gradients, inference mode has no ADInplaceOrView, and dispatch modes belong to a thread.
Unless CUSTOM_PYPTO_LOG or CUSTOM_PYPTO_RECORD is set, this module is not imported, and calls do not
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch

from custom_pypto.core.namespace import find_packet

# The classes of ops whose calls are watched have it.
_MARK = "_custom_pypto_watches_calls"


class Watcher(Protocol):
    """What sees the calls; it must not raise, and must not change the arguments."""

    def see(
        self, op: str, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """See a call of `op`; `names` are those of its arguments, none where they are unknown."""


class CallWatch:
    """The ops whose calls are watched."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers

    def watch(self, ops: Iterable[str]) -> None:
        """Watch each call of `ops` from now on; harmless when called twice."""
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
        """Have `function` show its calls; the object stays the same, because others may hold it."""
        kind = type(function)
        if hasattr(kind, _MARK):
            return

        def call(self_: Any, /, *args: Any, **kwargs: Any) -> Any:
            # A mode of the user must not see that tensors are looked at.
            with torch._C.DisableTorchFunction():
                for watcher in self._watchers:
                    watcher.see(op, names, args, kwargs)
            return kind.__call__(self_, *args, **kwargs)

        # Named as torch's class, because that name is printed.
        members = {"__call__": call, "__doc__": None, "__module__": kind.__module__, _MARK: True}
        function.__class__ = type(kind.__name__, (kind,), members)
