"""Warns of ops without a kernel, and of launch lines that no kernel uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from custom_pypto_contract.ops_file import OpsFile

from .ops_header.names import struct_name

NPU_KEY = "PrivateUse1"


def warn(file: Path, ops: OpsFile, kernels: Mapping[str, Sequence[str]]) -> None:
    """Print a line for each fault of the ops that `file` describes; `kernels` are keys by op."""
    for fault in _faults(ops, kernels):
        print(f"custom_pypto_build: warning: {file}: {fault}", flush=True)


def _faults(ops: OpsFile, kernels: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for op in ops.ops:
        definition = f"plugin.def<ops::{struct_name(op.name)}>()"
        launch = f'{definition}.impl<&ops::{struct_name(op.name)}::launch>("{NPU_KEY}")'
        if not kernels[op.name]:
            yield (
                f"the op {op.name!r} has no kernel, so every call of it fails: register one, in C++"
                f' as `{definition}.impl<&kernel>("CPU")`, in Python by the hook'
                " custom_pypto_kernels"
            )
        if op.npu.launch and NPU_KEY not in kernels[op.name]:
            yield (
                f"no kernel uses 'launch' of the op {op.name!r}: register it in C++ as `{launch}`,"
                " or remove the line"
            )
