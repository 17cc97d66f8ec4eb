"""Which kernels the loaded plugins would launch on an NPU of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from custom_pypto_cli import attempts, distribution, records
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial


def probes(trial: Trial) -> Iterator[Probe]:
    """Search as the ops would, in a child."""
    if distribution.version("torch_npu") is None:
        yield Probe("search", "not done: torch_npu is not installed, so ops run on the CPU alone")
        return
    outcome, _ = attempts.load(records.find_npu_kernels, time_limit=trial.time_limit)
    if not outcome.ok:
        yield Probe("search", f"failed: {outcome.brief}").with_problem(
            f"looking for kernels failed: {outcome.failure}",
            "solve the problems above first; if there is none, look at the libraries that"
            " ASCEND_CUSTOM_OPP_PATH names",
        )
        return
    found = cast("dict[str, list[dict[str, Any]]]", outcome.value)
    for plugin, kernels in found.items():
        for kernel in kernels:
            yield _probe(plugin, kernel)


def _probe(plugin: str, kernel: dict[str, Any]) -> Probe:
    probe = Probe(
        kernel["op"] or f"{plugin}: {kernel['symbols'][0]}", records.describe_kernel(kernel)
    )
    shadowed = list(records.describe_shadowed(kernel))
    for fault in records.describe_faults(kernel):
        # The package that is shadowed may be the right one.
        return probe.with_problem(*map("\n".join, zip(fault, *shadowed, strict=True)))
    if kernel["symbol"]:
        notes = shadowed
        if kernel["searched"]:
            instead = f"until then the op launches {kernel['symbol']}"
            notes.append(("; ".join(kernel["searched"]), instead))
        return probe.with_note(*map("; ".join, zip(*notes, strict=True))) if notes else probe
    return probe.with_note(
        "searched were " + ", ".join(kernel["searched"]),
        "install a custom opp package or a CANN that has it, and `source` its environment; without"
        " it the op fails on an NPU, or is put together from other kernels where it can be",
    )
