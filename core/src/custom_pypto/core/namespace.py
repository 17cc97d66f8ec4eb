"""`torch.ops.custom_pypto`: what it says about an op, above all one that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import torch

from custom_pypto.core.registry import NAMESPACE

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract


class Ops(Protocol):
    """Who knows the ops that plugins provide."""

    def complete(self) -> None:
        """Do what could not be done while plugins loaded."""

    def op_names(self) -> list[str]:
        """Return the names of the ops of the loaded plugins."""

    def contract(self, op: str) -> OpContract:
        """Return the contract of a loaded op."""

    def describe(self, op: str) -> str | None:
        """Return what `help` shows for `op`; None while its plugin loads."""

    def explain(self, op: str) -> str:
        """Return why there is no op called `op`, and what to do."""


class _Namespace(torch._ops._OpNamespace):
    """The namespace of torch, which explains what it does not have."""

    # torch derives each op's own __module__ from this one, and pickles compiled graphs by it.
    __module__ = torch._ops._OpNamespace.__module__

    _custom_pypto: Ops
    _early: dict[str, Any]
    """Ops that were looked up while their plugins loaded. Each must stay the object that it is."""

    def __getattr__(self, name: str) -> Any:
        # No op is called so, and torch, copy, pickle and inspect look such names up all the time.
        if name.startswith("__"):
            raise AttributeError(f"torch.ops.{NAMESPACE} has no attribute {name!r}")
        try:
            op = self._early.get(name) or super().__getattr__(name)
        except AttributeError:
            raise AttributeError(self._custom_pypto.explain(name)) from None
        self._custom_pypto.complete()
        text = self._custom_pypto.describe(name)
        if text is None:
            # Reading its contract would hold up the import: at the next look, then.
            self._early[name] = op
            vars(self).pop(name, None)
        else:
            op.__doc__ = text
            setattr(self, name, op)
        return op

    def __dir__(self) -> list[str]:
        """Return the ops too that nobody has looked up yet, so that they complete in a shell."""
        return sorted({*super().__dir__(), *self._custom_pypto.op_names()})


def install(ops: Ops) -> None:
    """Make `torch.ops.custom_pypto` look up in `ops` what it does not have."""
    namespace = getattr(torch.ops, NAMESPACE)
    # The object stays the same, for others may hold it already.
    namespace._early = {}
    namespace._custom_pypto = ops
    namespace.__class__ = _Namespace


def installed() -> Ops | None:
    """Return who was installed, also by an import of core that was deleted from `sys.modules`."""
    found: Ops | None = vars(getattr(torch.ops, NAMESPACE)).get("_custom_pypto")
    return found


def uninstall() -> None:
    """Make `torch.ops.custom_pypto` what it was before `install`."""
    namespace = getattr(torch.ops, NAMESPACE)
    namespace.__class__ = torch._ops._OpNamespace
    del namespace._custom_pypto, namespace._early


def forget(names: Iterable[str]) -> None:
    """Drop the ops that torch keeps in the namespace since they were first used.

    Without this they could still be called after their library has unregistered them.
    """
    namespace = getattr(torch.ops, NAMESPACE)
    for name in names:
        known = [vars(namespace).pop(name, None), namespace._early.pop(name, None)]
        if any(known) and name in namespace._dir:
            namespace._dir.remove(name)
