"""The plugins that core loads, what a name among them means, and what is to be said of them."""

from __future__ import annotations

import importlib
import logging
import os
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from custom_pypto_contract import aclnn_launch
from custom_pypto_contract.description import describe
from custom_pypto_contract.dispatch_keys import has_device
from custom_pypto_contract.errors import find_similar
from custom_pypto_contract.variables import STRICT
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS
from custom_pypto_discovery.installed_plugin import (
    LOADING_ATTRIBUTE,
    describe_missing_kernel,
    op_family,
)

from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import report_progress

if TYPE_CHECKING:
    from custom_pypto.core import NpuKernelRecord, PluginRecord

NO_ISA = "none: "
"""The beginning of the text where there is no instruction set; the reason follows."""


def load() -> tuple[PluginRecord, ...]:
    """Import core, which loads the plugins, and return their records in core's order.

    The records report rejected and failed plugins. So there are no warnings, and no error even if
    CUSTOM_PYPTO_STRICT is set. Any other error of the import goes to the caller.
    """
    os.environ.pop(STRICT, None)
    logger = logging.getLogger("custom_pypto")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(_ProgressHandler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plugins: tuple[PluginRecord, ...] = _core().plugins()
    return plugins


class _ProgressHandler(logging.Handler):
    """Reports from core's log which plugin is loading, empty if none is."""

    def emit(self, record: logging.LogRecord) -> None:
        """Report the plugin if `record` is of the begin or the end of its loading."""
        if (plugin := getattr(record, LOADING_ATTRIBUTE, None)) is not None:
            report_progress(plugin)


def load_all() -> dict[str, Any]:
    """Load the plugins; return their records and torch's seconds, as JSON."""
    start = time.perf_counter()
    # The import of core, which follows, has a better text for an error.
    with suppress(Exception):
        importlib.import_module("torch")
    seconds = time.perf_counter() - start
    return {"plugins": list(map(as_json, load())), "torch": seconds}


def find_npu_kernels() -> dict[str, list[dict[str, Any]]]:
    """Load the plugins; return the NPU kernels of each, as JSON."""
    return {plugin["name"]: npu_kernels(plugin) for plugin in map(as_json, load())}


# What follows is for records that `load` returned.


def find(name: str, plugins: Sequence[PluginRecord]) -> list[PluginRecord]:
    """Return the plugins called ``name``, else those with an op called so, with that op alone."""
    called = [plugin for plugin in plugins if name in (plugin.name, plugin.distribution)]
    if called:
        return called
    bare = _strip_prefix(name)
    providers: list[PluginRecord] = []
    for plugin in plugins:
        ops = tuple(op for op in plugin.ops if bare in (op.name, op_family(op.name)))
        if ops:
            providers.append(replace(plugin, ops=ops))
    return providers


def find_ops(
    name: str, plugins: Sequence[PluginRecord]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what a name means, and its loaded ops with their plugins."""
    found = find(name, plugins)
    loaded = [plugin for plugin in found if plugin.status == "loaded"]
    meant = {
        "plugins": list(map(as_json, found)),
        "unknown": "" if found else explain_unknown(name, plugins),
    }
    return meant, [(plugin.name, op.name) for plugin in loaded for op in plugin.ops]


def explain_unknown(name: str, plugins: Sequence[PluginRecord]) -> str:
    """Return the text that nothing is called `name`, with names that are similar."""
    known = {plugin.name for plugin in plugins}
    known |= {plugin.distribution for plugin in plugins}
    known |= {op.name for plugin in plugins for op in plugin.ops}
    near = find_similar(_strip_prefix(name), sorted(known - {""}), most=4, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    return (
        f"no installed op or plugin is called {name!r}; {hint}`custom-pypto list` shows what is"
        f" installed; {HOW_TO_INSTALL_OPS}"
    )


def as_json(record: PluginRecord | NpuKernelRecord) -> dict[str, Any]:
    """Return `record` as plain data: a path is its text, and what does not exist is empty.

    The record of a plugin also has the instruction set of its CPU kernels, or why there is none.
    """
    plain = asdict(record, dict_factory=_plain)
    if "ops" in plain:
        plain["cpu_isa"] = _cpu_isa(plain)
        for op in plain["ops"]:
            # The plugin's record holds the op.
            del op["plugin"]
    return plain


def describe_contract(op: str) -> list[str]:
    """Return what the contract of a loaded op says besides its schema."""
    return describe(_core().contract(op)).splitlines()[1:]


def _cpu_isa(plugin: dict[str, Any]) -> str:
    if plugin["status"] != "loaded":
        return ""
    try:
        return _core().cpu_isa(plugin["name"]) or ""
    except _core().PluginError as error:
        return f"{NO_ISA}{error}"


# What follows is for records that `as_json` returned.


def npu_kernels(plugin: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the NPU kernels of a plugin, as JSON; none when it is not loaded.

    Searches this machine, which loads the libraries with kernels that it finds.
    """
    is_loaded = plugin["status"] == "loaded"
    return list(map(as_json, _core().npu_kernels(plugin["name"]))) if is_loaded else []


def describe_missing_kernels(plugin: dict[str, Any]) -> list[tuple[str, str]]:
    """Return, for each op of a loaded plugin that no device can run, what is wrong and a remedy."""
    if plugin["status"] != "loaded":
        return []
    return [
        describe_missing_kernel(op["name"], plugin["distribution"])
        for op in plugin["ops"]
        if not has_device(op["dispatch_keys"])
    ]


def describe_kernel(plugin: str, kernel: dict[str, Any]) -> Check:
    """Return what serves an op on an NPU, what is wrong with it, and what to do."""
    symbol, places = kernel["symbol"], kernel["searched"]
    problems = [
        (kernel["fault"], "until then the op fails on an NPU"),
        (kernel["mismatch"], aclnn_launch.REMEDY),
    ]
    has_problem = any(text for text, _ in problems)
    texts = [text for text, _ in problems if text]
    advice = [remedy for text, remedy in problems if text]
    if symbol:
        unchecked = f"; unchecked: {kernel['unchecked']}" if kernel["unchecked"] else ""
        value = f"{symbol} of {kernel['origin']} ({kernel['library']}){unchecked}"
    elif has_problem:
        value = "none that can be used"
    else:
        value = f"none on this machine: {' or '.join(kernel['symbols'])} would do"
        texts += [f"searched {place}" for place in places]
        advice.append(_HOW_TO_GET_KERNELS)
    if symbol and places:
        texts += places
        advice.append(f"until then the op launches {symbol}")
    check = Check(kernel["op"] or f"{plugin}: {kernel['symbols'][0]}", value)
    if has_problem:
        return check.with_problem("\n".join(texts), "\n".join(advice))
    return check.with_note("\n".join(texts), "\n".join(advice)) if advice else check


_HOW_TO_GET_KERNELS = (
    "install a custom opp package or a CANN that has it, and `source` its environment; without it"
    " the op fails on an NPU, or is put together from other kernels where it can be"
)


def _core() -> Any:
    return importlib.import_module("custom_pypto.core")


def _strip_prefix(name: str) -> str:
    for prefix in ("torch.ops.", "custom_pypto.", "custom_pypto::"):
        name = name.removeprefix(prefix)
    return name.removesuffix(".default")


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = {name: "" if value is None else value for name, value in fields}
    return {name: str(each) if isinstance(each, Path) else each for name, each in plain.items()}
