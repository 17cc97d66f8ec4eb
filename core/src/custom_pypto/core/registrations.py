"""Compares what is registered in our namespace before and after a plugin has loaded."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable
from pathlib import Path

import torch

from custom_pypto.core import dispatcher
from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE


class Registrations:
    """The registrations of our namespace that are known; each other one is a plugin's mistake."""

    def __init__(self, ops: Iterable[str]) -> None:
        """Take what is registered now; `ops` are all that plugins declare, loaded or not."""
        self._known = dispatcher.dump_registrations(ops)
        self.earlier = frozenset(dispatcher.op_names())
        """Names that were registered before: no plugin that loads now did it."""

    def accept(self, ops: Iterable[str]) -> None:
        """Take what is registered now for `ops`, whose plugin has loaded."""
        self._known.update(dispatcher.dump_registrations(ops))

    def expect_unchanged(self, own: Iterable[str]) -> None:
        """Check that the plugin with the ops `own` has registered nothing for those of others.

        Raises:
            LoadError: a kernel or schema of another op was added, replaced or removed.
        """
        for op in sorted(set(self.changed()).difference(own)):
            raise LoadError(
                f"it {self._describe_change(op)} {NAMESPACE}::{op}, which is an op of another"
                " plugin; uninstall one of the two"
            )

    def changed(self) -> list[str]:
        """Return the declared ops whose registrations differ from what is known."""
        now = dispatcher.dump_registrations(self._known)
        return [op for op, text in self._known.items() if now[op] != text]

    def keys(self, ops: Iterable[str]) -> dict[str, set[str]]:
        """Return the dispatch keys for which kernels of `ops` are known."""
        return {op: _keys(self._known[op]) for op in ops}

    def undeclared(self) -> list[str]:
        """Return the names of ops and kernels that no plugin declares, sorted."""
        return sorted(set(dispatcher.op_names()) - self._known.keys())

    def _describe_change(self, op: str) -> str:
        before, now = self._known[op], dispatcher.dump_registration(op)
        if before and not now:
            return "removes"
        if lost := _keys(before) - _keys(now):
            return f"removes the {min(lost)} kernel of"
        new = [line for line in now.splitlines() if line not in before.splitlines()]
        keys = [key for line in new for key in _keys(line)]
        return f"registers a {keys[0]} kernel for" if keys else "registers a schema for"


def destroy_libraries(ops: Iterable[str], kept: Iterable[torch.library.Library]) -> None:
    """Undo what Python code registered for `ops` by torch.library, except by `kept`."""
    wanted = set(ops)
    ours = set(map(id, kept))
    for each in gc.get_objects():
        if type(each) is torch.library.Library and each.ns == NAMESPACE and id(each) not in ours:
            defined = {name.partition("::")[2] for name in each._op_defs}
            implemented = {name.split("/")[1] for name in each._op_impls}
            if wanted & (defined | implemented):
                each._destroy()  # type: ignore[no-untyped-call]


def find_origins(op: str) -> list[Path]:
    """Return the files that registered `op`, as far as the dispatcher knows them."""
    return [
        Path(found)
        for found in re.findall(r"registered at (.+?):\d+", dispatcher.dump_registration(op))
    ]


def _keys(dump: str) -> set[str]:
    """Return the dispatch keys with a kernel in the text of `dispatcher.dump_registration`."""
    lines = re.findall(r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: registered at", dump, re.MULTILINE)
    return set(lines) - {"debug"}
