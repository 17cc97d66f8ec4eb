"""torch and torch_npu: whether they are there, and whether they can be imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, cast

from custom_pypto_contract.abi import TORCH_TARGET

from custom_pypto_cli import child, distribution
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial

_IMPORT = """\
import time
start = time.perf_counter()
import {modules}
report(time.perf_counter() - start)
"""
_NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def probes(trial: Trial) -> Iterator[Probe]:
    """Look at torch and torch_npu, and import them in children."""
    version = distribution.version("torch")
    if version is None:
        oldest = ".".join(map(str, TORCH_TARGET))
        yield Probe("torch", "not installed").with_problem(
            "torch is not installed", f"pip install 'torch>={oldest}'"
        )
        return
    yield _torch_version(version)
    torch_npu = distribution.version("torch_npu")
    yield _torch_import(trial, torch_npu)
    yield Probe("torch_npu", torch_npu or "not installed")
    if torch_npu is not None:
        yield _torch_npu_import(trial.time_limit, torch_npu)


def _torch_version(version: str) -> Probe:
    probe = Probe("torch", version)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= TORCH_TARGET:
        return probe
    oldest = ".".join(map(str, TORCH_TARGET))
    return probe.with_problem(
        f"torch {version} is older than {oldest}, which ops are built for",
        f"pip install --upgrade 'torch>={oldest}'",
    )


def _torch_import(trial: Trial, torch_npu: str | None) -> Probe:
    loaded, _ = trial.loaded
    if loaded.ok:
        return Probe("import torch", _seconds(cast("dict[str, Any]", loaded.value)["torch"]))
    outcome = child.run(_IMPORT.format(modules="torch"), time_limit=trial.time_limit)
    if outcome.ok:
        return Probe("import torch", _seconds(outcome.value))
    probe = Probe("import torch", f"failed: {outcome.brief}")
    autoloads = torch_npu is not None and os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0"
    if autoloads and _import_alone("torch", trial.time_limit).ok:
        return probe.with_problem(
            f"torch loads torch_npu {torch_npu} by itself, and that failed: {outcome.failure}",
            "on an NPU machine run `source <CANN folder>/set_env.sh` first; to use the CPU "
            f"only, set TORCH_DEVICE_BACKEND_AUTOLOAD=0{_or_simulate()}",
        )
    return probe.with_problem(
        f"`import torch` failed: {outcome.failure}",
        "try `python -X faulthandler -c 'import torch'`; reinstall torch if it fails there too",
    )


def _import_alone(modules: str, time_limit: float) -> child.Outcome:
    """Import modules where torch loads no device's package by itself."""
    code = _IMPORT.format(modules=modules)
    return child.run(code, time_limit=time_limit, environment=_NO_AUTOLOAD)


def _torch_npu_import(time_limit: float, version: str) -> Probe:
    outcome = _import_alone("torch, torch_npu", time_limit)
    if outcome.ok:
        return Probe("import torch_npu", _seconds(outcome.value))
    # The loader reports the first library of CANN that it misses.
    lacks_cann = "cannot open shared object file" in outcome.failure
    return Probe("import torch_npu", f"failed: {outcome.brief}").with_problem(
        f"`import torch_npu` {version} failed: {outcome.failure}",
        "run `source <CANN folder>/set_env.sh` first, or `pip uninstall torch_npu` where there is "
        "no NPU; torch and torch_npu must have the same major and minor version"
        + (_or_simulate() if lacks_cann else ""),
    )


def _or_simulate() -> str:
    """Return what else helps where there is no CANN: the simulator, if it is installed."""
    if distribution.version("custom-pypto-simulator") is None:
        return ""
    return (
        "; to use simulated NPUs, start each program with `custom-pypto-sim run --`, as in "
        "`custom-pypto-sim run -- custom-pypto doctor`"
    )


def _seconds(value: object) -> str:
    return f"ok, {value:.1f} s" if isinstance(value, float) else "ok"
