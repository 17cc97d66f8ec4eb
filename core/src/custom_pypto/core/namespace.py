"""`torch.ops.custom_pypto`, which describes its ops and explains why one is absent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from custom_pypto_contract.fork_locks import FIRST_USE

from custom_pypto.core.records import NAMESPACE


class _Namespace(torch._ops._OpNamespace):
    """torch's namespace, with explanations for absent ops."""

    # torch derives each op's own __module__ from this one, and pickles compiled graphs by it.
    __module__ = torch._ops._OpNamespace.__module__

    _custom_pypto: Any
    """The loader, which imports this module."""
    _early: dict[str, Any]
    """Ops that nobody described yet. They must stay the same objects."""

    def __getattr__(self, name: str) -> Any:
        # No op has such a name, and torch, copy, pickle and inspect often look one up.
        if name.startswith("__"):
            raise AttributeError(f"torch.ops.{NAMESPACE} has no attribute {name!r}")
        if self._custom_pypto.refuses(name):
            raise AttributeError(self._custom_pypto.explain(name))
        with FIRST_USE.lock:
            try:
                op = self._early.get(name) or super().__getattr__(name)
            except AttributeError:
                raise AttributeError(self._custom_pypto.explain(name)) from None
            text = self._custom_pypto.describe(name)
            if text is None:
                # Reading its contract now would delay the import. The next look-up reads it.
                self._early[name] = op
                vars(self).pop(name, None)
            else:
                op.__doc__ = text
                setattr(self, name, op)
        self._custom_pypto.complete()
        return op

    def __dir__(self) -> list[str]:
        """Also list the ops that nobody has looked up yet, so that a shell completes them."""
        return sorted({*super().__dir__(), *self._custom_pypto.op_names()})


def find_overload(op: str) -> torch._ops.OpOverload[..., Any]:
    """Return a registered op, whose name may have an overload: ``foo.bar``."""
    name, _, overload = op.partition(".")
    packet = getattr(getattr(torch.ops, NAMESPACE), name)
    found: torch._ops.OpOverload[..., Any] = getattr(packet, overload or "default")
    return found


def find_packet(op: str) -> torch._ops.OpOverloadPacket[..., Any]:
    """Return a registered op by its name without overload; its contract is not read for that."""
    namespace = getattr(torch.ops, NAMESPACE)
    found = vars(namespace).get(op) or namespace._early.get(op)
    if found is None:
        found = torch._ops._OpNamespace.__getattr__(namespace, op)
        del vars(namespace)[op]
        namespace._early[op] = found
    packet: torch._ops.OpOverloadPacket[..., Any] = found
    return packet


def install(loader: Any) -> None:
    """Make `torch.ops.custom_pypto` ask `loader` about what it does not have."""
    namespace = getattr(torch.ops, NAMESPACE)
    # The object stays the same: others may hold it already.
    namespace._early = {}
    namespace._custom_pypto = loader
    namespace.__class__ = _Namespace


def installed() -> Any:
    """Return the loader, or None; it survives when core is deleted from `sys.modules`."""
    return vars(getattr(torch.ops, NAMESPACE)).get("_custom_pypto")


def uninstall() -> None:
    """Undo `install`."""
    namespace = getattr(torch.ops, NAMESPACE)
    namespace.__class__ = torch._ops._OpNamespace
    del namespace._custom_pypto, namespace._early


def forget(names: Iterable[str]) -> None:
    """Drop the ops that torch cached in the namespace at their first use.

    Otherwise they could still be called after their library has unregistered them.
    """
    namespace = getattr(torch.ops, NAMESPACE)
    for name in names:
        known = [vars(namespace).pop(name, None), namespace._early.pop(name, None)]
        if any(known) and name in namespace._dir:
            namespace._dir.remove(name)
