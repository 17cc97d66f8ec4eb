"""What the dispatcher knows of the ops in our namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from custom_pypto_contract.manifest import Op

from custom_pypto.core.errors import LoadError
from custom_pypto.core.registry import NAMESPACE


class DispatcherError(LoadError):
    """The dispatcher's ops are not what a manifest says."""


def expect_free(ops: Iterable[Op]) -> None:
    """Check that none of `ops` is registered yet.

    Raises:
        DispatcherError: somebody who is no plugin of core has registered one.
    """
    taken = [op.name for op in ops if _schema(op) is not None]
    if taken:
        raise DispatcherError(
            f"{NAMESPACE}::{taken[0]} is registered in this process already, by something that is"
            f" no plugin of core, such as an extension with TORCH_LIBRARY({NAMESPACE}, ...) or a"
            " library that was loaded by torch.ops.load_library; do not load both"
        )


def expect_registered(ops: Sequence[Op]) -> None:
    """Check that `ops` are registered with the schemas they have in the manifest.

    Raises:
        DispatcherError: one is missing or has another schema.
    """
    for op in ops:
        registered = _schema(op)
        if registered is None:
            raise DispatcherError(
                f"its manifest lists the op {op.name!r}, but its library does not register it;"
                " build the plugin again"
            )
        declared = str(torch._C.parse_schema(f"{NAMESPACE}::{op.schema}"))
        if declared != registered:
            raise DispatcherError(
                f"its library registers {registered}, but its manifest says {declared};"
                " build the plugin again"
            )


def _schema(op: Op) -> str | None:
    name, _, overload = op.name.partition(".")
    qualified = f"{NAMESPACE}::{name}"
    if torch._C._get_operation_overload(qualified, overload) is None:
        return None
    return str(torch._C._get_schema(qualified, overload))
