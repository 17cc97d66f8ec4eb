"""Asks an open plugin library for its instruction set and the NPU kernels it launches."""

from __future__ import annotations

import ctypes
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import abi
from custom_pypto_contract.variables import CPU_ISA

from custom_pypto.core.errors import PluginError


@dataclass(frozen=True, slots=True)
class NpuKernelRecord:
    """The kernel that an op launches on an NPU."""

    op: str
    """The op's name; empty when the library does not say which op launches the kernel."""
    symbols: tuple[str, ...]
    """The aclnn kernels that can serve it, the preferred first."""
    symbol: str
    """The kernel that is used, or would be at the next call; empty when the machine has none."""
    library: Path | None
    """The library that has the kernel; None when the machine has none."""
    origin: str
    """The owner of that library: "the plugin's own opp package", "a custom opp package" or
    "CANN"; empty when the machine has none."""
    searched: tuple[str, ...]
    """When the machine has none: every place that was searched, and what was found there. Else the
    libraries that have a preferred one, for another NPU."""
    fault: str = ""
    """Why the kernel that was found must not be used; then `symbol` is empty."""
    mismatch: str = ""
    """How the kernel's header differs from what the plugin passes."""
    unchecked: str = ""
    """Why what the plugin passes cannot be compared with a header."""


def query_cpu_isa(library: Path) -> str | None:
    """Return the instruction set of the library's CPU kernels; None if it does not report one.

    Raises:
        PluginError: CUSTOM_PYPTO_CPU_ISA names one that the machine or the plugin lacks.
    """
    try:
        query = ctypes.CDLL(str(library))[abi.CPU_ISA]
    except AttributeError:
        return None
    query.restype = ctypes.c_char_p
    name: bytes | None = query()
    if name is None:
        forced = os.environ.get(CPU_ISA, "")
        raise PluginError(
            f"{CPU_ISA}={forced!r} names an instruction set that this machine lacks or"
            f" {library.name} has no kernels for"
        )
    return name.decode()


def query_npu_kernels(library: Path) -> tuple[NpuKernelRecord, ...]:
    """Return what the library would launch on an NPU; may be empty.

    The search loads the libraries with kernels that it finds.

    Raises:
        PluginError: the library cannot report them.
    """
    records: list[dict[str, list[str]]] = []
    for field, value in query(library, abi.NPU_KERNELS):
        if field == "op":
            records.append(defaultdict(list))
        records[-1][field].append(value)
    return tuple(
        NpuKernelRecord(
            op="".join(found["op"]),
            symbols=tuple(found["candidate"]),
            symbol="".join(found["symbol"]),
            library=Path(found["library"][0]) if found["library"] else None,
            origin="".join(found["origin"]),
            searched=tuple(found["searched"]),
            fault="".join(found["fault"]),
        )
        for found in records
    )


def query(library: Path, function: str) -> list[tuple[str, str]]:
    """Return the fields and values that a function of the library reports; none if it has none.

    Raises:
        PluginError: the library cannot report them.
    """
    try:
        report = ctypes.CDLL(str(library))[function]
    except AttributeError:
        return []
    report.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    report.restype = ctypes.c_size_t
    buffer = ctypes.create_string_buffer(0)
    while (needed := report(buffer, len(buffer))) > len(buffer):
        # A later search may find another kernel, and need more again.
        buffer = ctypes.create_string_buffer(needed)
    if needed == 0:
        raise PluginError(f"{library} failed to look for NPU kernels")
    lines = buffer.value.decode("utf-8", "replace").split("\n")[:-1]
    return [(field, value) for field, _, value in (line.partition("\t") for line in lines)]
