"""The ops in our namespace as the dispatcher has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from custom_pypto_contract.dispatch_keys import DISPATCH_KEYS
from custom_pypto_contract.manifest import ManifestOp

from custom_pypto.core.errors import LoadError
from custom_pypto.core.records import NAMESPACE


def expect_free(ops: Iterable[ManifestOp]) -> None:
    """Check that none of `ops` is registered yet.

    Raises:
        LoadError: something that is no plugin of core registered one.
    """
    taken = [op.name for op in ops if schema_of(op.name) is not None]
    if taken:
        raise LoadError(
            f"{NAMESPACE}::{taken[0]} is registered in this process already, by something that is"
            f" no plugin of core, such as an extension with TORCH_LIBRARY({NAMESPACE}, ...) or a"
            " library that was loaded by torch.ops.load_library; do not load both"
        )


def expect_registered(ops: Sequence[ManifestOp]) -> None:
    """Check that `ops` are registered with the schemas they have in the manifest.

    Raises:
        LoadError: one is missing or has another schema.
    """
    for op in ops:
        registered = schema_of(op.name)
        if registered is None:
            raise LoadError(
                f"its manifest lists the op {op.name!r}, but its library does not register it:"
                " define it in CUSTOM_PYPTO_PLUGIN, or take it out of ops.toml, and build the"
                " plugin again"
            )
        declared = str(torch._C.parse_schema(f"{NAMESPACE}::{op.schema}"))
        if declared != str(registered):
            raise LoadError(
                f"its library registers {registered}, but its manifest says {declared};"
                " build the plugin again"
            )


def dump_registrations(ops: Iterable[str]) -> dict[str, str]:
    """Return a text for each of `ops` that changes with what is registered for it."""
    # The dispatcher has no other answer that tells a kernel from one that replaced it.
    dump = torch._C._dispatch_dump
    return {op: dump(f"{NAMESPACE}::{op}") for op in ops}


def names() -> set[str]:
    """Return the names of all ops, torch's too, for which a schema or a kernel is registered."""
    # "" stands for all keys: a third of the time of _dispatch_get_all_op_names.
    return set(torch._C._dispatch_get_registrations_for_dispatch_key(""))


def keys_with_kernels(op: str, keys: Iterable[str] = DISPATCH_KEYS) -> list[str]:
    """Return the keys of `keys` that `op` has a kernel for."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return [key for key in keys if has_kernel(f"{NAMESPACE}::{op}", key)]


def schema_of(op: str) -> Any:
    """Return the schema with which `op` is registered; None if it is not."""
    name, _, overload = op.partition(".")
    qualified = f"{NAMESPACE}::{name}"
    if torch._C._get_operation_overload(qualified, overload) is None:
        return None
    return torch._C._get_schema(qualified, overload)
