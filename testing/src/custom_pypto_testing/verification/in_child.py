"""The functions of ``custom-pypto verify`` that run in processes of their own."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_cli.plugin_list import NO_ISA

if TYPE_CHECKING:
    from custom_pypto.core import PluginRecord

_KEYS = {"npu": "PrivateUse1", "cpu": "CPU"}


def find(chosen: list[str]) -> dict[str, Any]:
    """Load the plugins; return their records, and the ops that `chosen` means by plugin, or all."""
    plugins = plugin_list.load()
    found: list[PluginRecord] = [] if chosen else list(plugins)
    for name in chosen:
        meant = plugin_list.find(name, plugins)
        if not meant:
            return {"plugins": [], "unknown": plugin_list.explain_unknown(name, plugins)}
        found += meant
    ops: dict[str, list[str]] = {}
    for plugin in found:
        of_plugin = ops.setdefault(plugin.name, [])
        of_plugin += [op.name for op in plugin.ops if op.name not in of_plugin]
    return {"plugins": list(map(plugin_list.as_json, plugins)), "ops": ops, "unknown": ""}


def describe_npus() -> dict[str, str]:
    """Return facts about the NPUs of this machine; none if torch_npu finds none."""
    importlib.import_module("torch_npu")
    from custom_pypto_testing.verification import machine

    return machine.describe_npus()


def check_machine(check: str, device: str) -> dict[str, Any]:
    """Run a check of `checks.OF_MACHINE`."""
    _import_device(device)
    from custom_pypto_testing.verification import machine, symbols

    functions: dict[str, Callable[[], Any]] = {
        "versions": machine.check_versions,
        "symbols": symbols.check_symbols,
        "add": lambda: machine.check_add(device),
    }
    return asdict(functions[check]())


def check_op(check: str, plugin: str, op: str, device: str, most: int) -> dict[str, Any]:
    """Load the plugins; run a check of `checks.OF_OPS` on at most `most` calls."""
    plugins = plugin_list.load()
    _import_device(device)
    if check == "kernels":
        [record] = [each for each in plugins if each.name == plugin and each.status == "loaded"]
        return _check_kernels(record, op, device)
    from custom_pypto_testing.verification.run import run_check

    return asdict(run_check(check, plugin, op, device, most, subprocess_call.report_progress))


def _import_device(device: str) -> None:
    """Import torch_npu, also where torch does not by itself."""
    if device == "npu":
        importlib.import_module("torch")
        importlib.import_module("torch_npu")


def _check_kernels(plugin: PluginRecord, op: str, device: str) -> dict[str, Any]:
    from custom_pypto_testing.verification.finding import Finding

    [record] = [each for each in plugin.ops if each.name == op]
    keys = record.dispatch_keys
    if _KEYS[device] not in keys and not any(key.startswith("Composite") for key in keys):
        return asdict(Finding(f"the op has no kernel for {device}", applies=False))
    if device == "cpu":
        isa = plugin_list.cpu_isa(plugin)
        return asdict(
            Finding(isa or "its kernels report no ISA", isa if isa.startswith(NO_ISA) else "")
        )
    kernels = [
        plugin_list.as_json(each) for each in plugin_list.npu_kernels(plugin) if each.op == op
    ]
    text = "; ".join(map(plugin_list.describe_kernel, kernels))
    faults = [": ".join(fault) for each in kernels for fault in plugin_list.describe_faults(each)]
    searched = {"; ".join(each["symbols"]): each["searched"] for each in kernels}
    return asdict(
        Finding(
            text or "composed of torch's ops: its library launches no kernel of its own",
            "\n".join(faults),
            {"searched": searched},
        )
    )
