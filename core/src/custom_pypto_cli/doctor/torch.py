"""torch and torch_npu: whether they are there, and whether they can be imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from custom_pypto_contract.abi import TORCH_TARGET
from custom_pypto_discovery import distributions

from custom_pypto_cli import subprocess_call
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

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
    loaded, _ = context.loaded
    if loaded.ok:
        yield Check("import torch", f"ok, {cast('dict[str, Any]', loaded.value)['torch']:.1f} s")
    else:
        yield _check_import(
            "torch",
            context,
            "try `python -X faulthandler -c 'import torch'`; reinstall torch if it fails there too",
        )
    yield Check("torch_npu", torch_npu or ("not installed" if torch_npu is None else _UNREADABLE))
    if torch_npu is not None:
        advice = (
            "run `source <CANN folder>/set_env.sh` first; torch and torch_npu must have the same"
            f" major and minor version; to use the CPU only, set {_AUTOLOAD}=0, or `pip uninstall"
            " torch_npu`"
        )
        if distributions.version("custom-pypto-simulator") is not None:
            advice += "; to use simulated NPUs, start each program with `custom-pypto-sim run --`"
        yield _check_import("torch_npu", context, advice)


def _check_import(module: str, context: DoctorContext, advice: str) -> Check:
    """Import a module where torch imports no device's package by itself."""
    outcome = subprocess_call.run(
        f"import torch, {module}\nreport(True)",
        time_limit=context.time_limit,
        environment={_AUTOLOAD: "0"},
    )
    name = f"import {module}"
    if outcome.ok:
        return Check(name, "ok")
    check = Check(name, f"failed: {outcome.brief}")
    return check.with_problem(f"`{name}` failed: {outcome.failure}", advice)
