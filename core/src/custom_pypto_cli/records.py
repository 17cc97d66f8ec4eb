"""What core loaded, as plain data: for JSON, and for crossing from a child process."""

from __future__ import annotations

import importlib
import os
import shlex
import warnings
from typing import TYPE_CHECKING, TypedDict

from custom_pypto_discovery import candidates

from custom_pypto_cli.commands import CommandError

if TYPE_CHECKING:
    from custom_pypto.core import PluginRecord


NO_LEVEL = "none: "
"""What begins a level that there is none of; the reason follows."""


class Op(TypedDict):
    """An op of a plugin."""

    name: str
    schema: str
    dispatch_keys: list[str]


class NpuKernel(TypedDict):
    """What serves an op on an NPU; see `custom_pypto.core.NpuKernelRecord`."""

    op: str
    symbols: list[str]
    symbol: str
    library: str
    origin: str
    searched: list[str]


class Plugin(TypedDict):
    """A plugin in one of the states of core: loaded, blocked or quarantined."""

    name: str
    version: str
    distribution: str
    status: str
    reason: str
    ops: list[Op]
    library: str
    opp: str
    load_time: float
    leftovers: list[str]


def load() -> list[Plugin]:
    """Import core, which loads the plugins, and return their records in core's order.

    Quarantined plugins are told in their records, hence neither as warnings nor, whatever
    CUSTOM_PYPTO_STRICT says, as an error. Whatever importing core raises goes to the caller.
    """
    os.environ.pop("CUSTOM_PYPTO_STRICT", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        core = importlib.import_module("custom_pypto.core")
    leftovers = {
        (found.distribution, found.name): list(map(str, found.leftovers))
        for found in candidates.find()
    }
    return [
        _plugin(record, leftovers.get((record.distribution, record.name), []))
        for record in core.plugins()
    ]


def load_or_explain() -> list[Plugin]:
    """Do the same as `load`; raises `CommandError`, with what to do, when importing core fails."""
    try:
        return load()
    except Exception as error:
        raise CommandError(
            f"importing custom_pypto.core failed: {type(error).__name__}: {error}\n"
            "Run `custom-pypto doctor`, which works all the same, to see why."
        ) from error


def cpu_level(plugin: Plugin) -> str:
    """Return the instruction set level of ``plugin``'s CPU kernels, or why there is none; else ''.

    To be called after `load`.
    """
    if plugin["status"] != "loaded":
        return ""
    core = importlib.import_module("custom_pypto.core")
    try:
        return core.cpu_level(plugin["name"]) or ""
    except core.PluginError as error:
        return f"{NO_LEVEL}{error}"


def npu_kernels(plugin: Plugin) -> list[NpuKernel]:
    """Return the NPU kernels of ``plugin``; empty when it is not loaded. To be called after `load`.

    Searches this machine, which loads the libraries with kernels that it finds.
    """
    if plugin["status"] != "loaded":
        return []
    core = importlib.import_module("custom_pypto.core")
    return [
        {
            "op": record.op,
            "symbols": list(record.symbols),
            "symbol": record.symbol,
            "library": str(record.library or ""),
            "origin": record.origin,
            "searched": list(record.searched),
        }
        for record in core.npu_kernels(plugin["name"])
    ]


def kernel_text(kernel: NpuKernel) -> str:
    """Return one line that says what serves an op on an NPU."""
    if kernel["symbol"]:
        return f"{kernel['symbol']} of {kernel['origin']} ({kernel['library']})"
    return f"none on this machine: {' or '.join(kernel['symbols'])} would do"


def leftover_text(folder: str) -> tuple[str, str]:
    """Return what is to be said of a leftover metadata folder, and what to do about it."""
    return (
        f"{folder} is left over from another installation of it, and confuses pip",
        f"delete it: rm -r {shlex.quote(folder)}",
    )


def _plugin(record: PluginRecord, leftovers: list[str]) -> Plugin:
    return {
        "name": record.name,
        "version": record.version,
        "distribution": record.distribution,
        "status": str(record.status),
        "reason": record.reason,
        "ops": [
            {
                "name": op.name,
                "schema": op.schema,
                "dispatch_keys": list(op.dispatch_keys),
            }
            for op in record.ops
        ],
        "library": str(record.library or ""),
        "opp": str(record.opp or ""),
        "load_time": record.load_time,
        "leftovers": leftovers,
    }
