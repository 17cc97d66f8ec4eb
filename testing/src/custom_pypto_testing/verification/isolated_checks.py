"""The functions of ``custom-pypto verify`` that run in processes of their own."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_contract.abi import OLDEST_TORCH, TORCH_TARGET
from custom_pypto_discovery.printable import shorten

from .report import Verdict

_MODULES = ("CANN", "RUNTIME", "OPP", "OPP_KERNEL", "DRIVER")
"""The names of parts of CANN, as torch_npu has them."""
_DRIVER = Path("/usr/local/Ascend/driver/version.info")
_UNKNOWN = "not known"


def find(chosen: list[str]) -> dict[str, Any]:
    """Load the plugins; return their records, and the ops that `chosen` means by plugin, or all."""
    plugins = plugin_list.load()
    found = [] if chosen else list(plugins)
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
    """Return the NPUs, and the versions of CANN and of the driver.

    Raises:
        AssertionError: torch_npu finds no NPU.
    """
    npu: Any = importlib.import_module("torch_npu").npu
    utils: Any = importlib.import_module("torch_npu.npu.utils")
    if not npu.is_available():
        raise AssertionError("torch_npu finds none")
    facts: dict[str, Callable[[], object]] = {
        "NPUs": npu.device_count,
        "name": lambda: npu.get_device_name(0),
        "bytes": lambda: npu.get_device_properties(0).total_memory,
    }
    for module in _MODULES:
        facts[f"version of {module}"] = partial(utils.get_cann_version, module)
    facts[str(_DRIVER)] = lambda: "; ".join(_DRIVER.read_text("utf-8").split())
    return {name: _value(read) for name, read in facts.items()}


def check(checks: list[str], op: str, device: str, most: int) -> list[dict[str, Any]]:
    """Load the plugins; run checks of an op, or of the machine if `op` is '', until one fails.

    Each check makes at most `most` calls.
    """
    if device == "npu":
        # torch may not import torch_npu by itself, and must be imported before it.
        importlib.import_module("torch")
        importlib.import_module("torch_npu")
    done: list[dict[str, Any]] = []

    def report(call: str) -> None:
        """Report the progress of the process, in case that it crashes."""
        subprocess_call.report_progress({"done": done, "call": call})

    run: Callable[[str], tuple[Verdict, str]] = partial(_check_machine, device=device)
    if op:
        plugin_list.load()
        from .op_checks import find_op, run_check

        run = partial(run_check, op=find_op(op, device), most=most, note=report)
    for name in checks:
        start = time.monotonic()
        verdict, text = run(name)
        seconds = time.monotonic() - start
        result = {"check": name, "verdict": verdict.value, "text": shorten(text)}
        done.append({**result, "seconds": seconds})
        report("")
        if verdict is Verdict.FAILED:
            break
    return done


def _check_machine(name: str, device: str) -> tuple[Verdict, str]:
    """Run the function ``_check_<name>`` of this module."""
    found: tuple[Verdict, str] = globals()[f"_check_{name}"](device)
    return found


def _check_versions(_: str) -> tuple[Verdict, str]:
    """Check that torch and torch_npu are of one release."""
    versions = [importlib.import_module(each).__version__ for each in ("torch", "torch_npu")]
    text = f"torch {versions[0]}, torch_npu {versions[1]}"
    numbers = [tuple(map(int, each.split(".")[:2])) for each in versions]
    if numbers[0] != numbers[1]:
        return Verdict.FAILED, f"{text}: both must have the same major and minor version"
    if numbers[0] < TORCH_TARGET:
        return Verdict.FAILED, f"{text}: ops are built for torch {OLDEST_TORCH} and newer"
    return Verdict.PASSED, text


def _check_add(device: str) -> tuple[Verdict, str]:
    """Check that torch's own add is right."""
    import torch

    number = torch.arange(1000.0, device="cpu")
    on_device = number.to(device)
    total = (on_device + on_device).cpu()
    if not total.equal(2 * number):
        return Verdict.FAILED, f"x + x is {total[:4].tolist()} ... for x = [0, 1, 2, 3 ...]"
    return Verdict.PASSED, "x + x of 1000 numbers"


def _value(read: Callable[[], object]) -> str:
    try:
        return str(read()) or _UNKNOWN
    except Exception as error:
        # A fact that cannot be read must not hide the others.
        return f"{_UNKNOWN}: {type(error).__name__}: {error}"
