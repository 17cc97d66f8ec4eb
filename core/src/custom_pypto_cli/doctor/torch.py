"""torch and torch_npu: whether they are there, and whether they can be imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, cast

from custom_pypto_contract.abi import TORCH_TARGET
from custom_pypto_discovery import distributions

from custom_pypto_cli import subprocess_call
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome

_OLDEST = ".".join(map(str, TORCH_TARGET))
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_UNREADABLE = "(unreadable metadata)"


def checks(context: DoctorContext) -> Iterator[Check]:
    """Look at torch and torch_npu, and import them in processes of their own."""
    torch, torch_npu = distributions.version("torch"), distributions.version("torch_npu")
    if torch is None:
        yield Check("torch", "not installed").with_problem(
            "torch is not installed", f"pip install 'torch>={_OLDEST}'"
        )
        return
    check = Check("torch", torch or _UNREADABLE)
    numbers = re.match(r"(\d+)\.(\d+)", torch)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < TORCH_TARGET:
        check = check.with_problem(
            f"torch {torch} is older than {_OLDEST}, which ops are built for",
            f"pip install --upgrade 'torch>={_OLDEST}'",
        )
    yield check
    yield _check_torch(context, torch_npu)
    yield Check("torch_npu", torch_npu or ("not installed" if torch_npu is None else _UNREADABLE))
    if torch_npu is not None:
        yield _check_torch_npu(context, torch_npu)


def _check_torch(context: DoctorContext, torch_npu: str | None) -> Check:
    name = "import torch"
    loaded, _ = context.loaded
    if loaded.ok:
        return Check(name, f"ok, {cast('dict[str, Any]', loaded.value)['torch']:.1f} s")
    outcome = _import("torch", context)
    if outcome.ok:
        return Check(name, "ok")
    check = Check(name, f"failed: {outcome.brief}")
    autoloads = torch_npu is not None and os.environ.get(_AUTOLOAD) != "0"
    if autoloads and _import("torch", context, autoloads=False).ok:
        return check.with_problem(
            f"torch loads torch_npu {torch_npu} by itself, and that failed: {outcome.failure}",
            "on an NPU machine run `source <CANN folder>/set_env.sh` first; to use the CPU "
            f"only, set {_AUTOLOAD}=0{_or_simulate()}",
        )
    return check.with_problem(
        f"`import torch` failed: {outcome.failure}",
        "try `python -X faulthandler -c 'import torch'`; reinstall torch if it fails there too",
    )


def _check_torch_npu(context: DoctorContext, version: str) -> Check:
    outcome = _import("torch, torch_npu", context, autoloads=False)
    if outcome.ok:
        return Check("import torch_npu", "ok")
    # The loader reports the first library of CANN that it misses.
    lacks_cann = "cannot open shared object file" in outcome.failure
    return Check("import torch_npu", f"failed: {outcome.brief}").with_problem(
        f"`import torch_npu` {version} failed: {outcome.failure}",
        "run `source <CANN folder>/set_env.sh` first, or `pip uninstall torch_npu` where there is "
        "no NPU; torch and torch_npu must have the same major and minor version"
        + (_or_simulate() if lacks_cann else ""),
    )


def _import(modules: str, context: DoctorContext, *, autoloads: bool = True) -> Outcome:
    return subprocess_call.run(
        f"import {modules}\nreport(True)",
        time_limit=context.time_limit,
        environment={} if autoloads else {_AUTOLOAD: "0"},
    )


def _or_simulate() -> str:
    """Return what else helps where there is no CANN: the simulator, if it is installed."""
    if distributions.version("custom-pypto-simulator") is None:
        return ""
    return (
        "; to use simulated NPUs, start each program with `custom-pypto-sim run --`, as in "
        "`custom-pypto-sim run -- custom-pypto doctor`"
    )
