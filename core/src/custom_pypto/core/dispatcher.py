"""The ops in our namespace as the dispatcher has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from custom_pypto_contract.manifest import ManifestOp
from custom_pypto_discovery.dispatch_keys import DISPATCH_KEYS

from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE


def expect_free(ops: Iterable[ManifestOp]) -> None:
    """Check that none of `ops` is registered yet.

    Raises:
        LoadError: something that is no plugin of core registered one.
    """
    taken = [op.name for op in ops if _schema(op) is not None]
    if taken:
        raise LoadError(
            f"{NAMESPACE}::{taken[0]} is registered in this process already, by something that is"
            f" no plugin of core, such as an extension with TORCH_LIBRARY({NAMESPACE}, ...) or a"
            " library that was loaded by torch.ops.load_library, or by a plugin whose manifest does"
            " not list it, which `custom-pypto doctor` names; do not load both"
        )


def expect_registered(ops: Sequence[ManifestOp]) -> None:
    """Check that `ops` are registered with the schemas they have in the manifest.

    Raises:
        LoadError: one is missing or has another schema.
    """
    for op in ops:
        registered = _schema(op)
        if registered is None:
            raise LoadError(
                f"its manifest lists the op {op.name!r}, but its library does not register it:"
                " define it in CUSTOM_PYPTO_PLUGIN, or take it out of ops.toml, and build the"
                " plugin again"
            )
        declared = str(torch._C.parse_schema(f"{NAMESPACE}::{op.schema}"))
        if declared != registered:
            raise LoadError(
                f"its library registers {registered}, but its manifest says {declared};"
                " build the plugin again"
            )


def dump_registrations(ops: Iterable[str]) -> dict[str, str]:
    """Return what is registered for each of `ops` now."""
    return {op: torch._C._dispatch_dump(f"{NAMESPACE}::{op}") for op in ops}


def expect_unchanged(before: Mapping[str, str]) -> None:
    """Check that the result of `dump_registrations` has not changed since.

    Raises:
        LoadError: a kernel of one of the ops was added or replaced.
    """
    for op, now in dump_registrations(before).items():
        if now != before[op]:
            changed = [line for line in now.splitlines() if line not in before[op].splitlines()]
            keys = [re.split(r"[ :\[]", line)[0] for line in changed] or ["?"]
            raise LoadError(
                f"it registers a {keys[0]} kernel for {NAMESPACE}::{op}, which is an op of another"
                " plugin and may give wrong results in this process from now on; uninstall one of"
                " the two"
            )


def find_undeclared(declared: Iterable[str]) -> list[str]:
    """Return the names of the ops in our namespace other than `declared`."""
    prefix = f"{NAMESPACE}::"
    names = torch._C._dispatch_get_all_op_names()
    ours = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    return sorted(ours.difference(declared))


def keys_with_kernels(op: str, keys: Iterable[str] = DISPATCH_KEYS) -> list[str]:
    """Return those of `keys` for which `op` has a kernel."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return [key for key in keys if has_kernel(f"{NAMESPACE}::{op}", key)]


def needs_fake(op: str) -> bool:
    """Return whether `op` has kernels that need a fake one beside them, and none yet."""
    return not keys_with_kernels(op, ("Meta", "CompositeImplicitAutograd"))


def _schema(op: ManifestOp) -> str | None:
    name, _, overload = op.name.partition(".")
    qualified = f"{NAMESPACE}::{name}"
    if torch._C._get_operation_overload(qualified, overload) is None:
        return None
    return str(torch._C._get_schema(qualified, overload))
