"""Which kernels the loaded plugins would launch on an NPU of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from custom_pypto_discovery import distributions

from custom_pypto_cli import isolated_load, plugin_list
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check


def checks(context: DoctorContext) -> Iterator[Check]:
    """Search as the ops would, in a process of its own."""
    if distributions.version("torch_npu") is None:
        yield Check("search", "not done: torch_npu is not installed, so ops run on the CPU alone")
        return
    outcome, _ = isolated_load.load(plugin_list.find_npu_kernels, time_limit=context.time_limit)
    if not outcome.ok:
        yield Check("search", f"failed: {outcome.brief}").with_problem(
            f"looking for kernels failed: {outcome.failure}",
            "solve the problems above first; if there is none, look at the libraries that"
            " ASCEND_CUSTOM_OPP_PATH names",
        )
        return
    found = cast("dict[str, list[dict[str, Any]]]", outcome.value)
    for plugin, kernels in found.items():
        for kernel in kernels:
            yield _check(plugin, kernel)


def _check(plugin: str, kernel: dict[str, Any]) -> Check:
    check = Check(
        kernel["op"] or f"{plugin}: {kernel['symbols'][0]}", plugin_list.describe_kernel(kernel)
    )
    shadowed = list(plugin_list.describe_shadowed(kernel))
    for fault in plugin_list.describe_faults(kernel):
        # The package that is shadowed may be the right one.
        return check.with_problem(*map("\n".join, zip(fault, *shadowed, strict=True)))
    if kernel["symbol"]:
        notes = shadowed
        if kernel["searched"]:
            instead = f"until then the op launches {kernel['symbol']}"
            notes.append(("; ".join(kernel["searched"]), instead))
        return check.with_note(*map("; ".join, zip(*notes, strict=True))) if notes else check
    return check.with_note(
        "searched were " + ", ".join(kernel["searched"]),
        "install a custom opp package or a CANN that has it, and `source` its environment; without"
        " it the op fails on an NPU, or is put together from other kernels where it can be",
    )
