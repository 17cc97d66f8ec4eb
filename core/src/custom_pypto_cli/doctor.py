"""The sections of ``custom-pypto doctor``: one function for each, which yields its checks."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from custom_pypto_contract.abi import OLDEST_TORCH, TORCH_TARGET
from custom_pypto_contract.errors import find_similar
from custom_pypto_contract.variables import CPU_ISA, DISABLE, KNOWN, LOCKFILE, PLUGINS
from custom_pypto_discovery import candidates, discovery, distributions, environment, lock_file
from custom_pypto_discovery.host import CORE, HOW_TO_INSTALL_OPS, major_minor, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, uninstall

from custom_pypto_cli import isolated_load, plugin_list, subprocess_call
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import TIME_LIMIT, Outcome

PREFIX = "CUSTOM_PYPTO_"
_PACKAGE = "custom_pypto"
_IMPORT = "import custom_pypto.core"
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_UNREADABLE = "(unreadable metadata)"
FOLDERS = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH")


@dataclass
class DoctorContext:
    """What the sections of one report share."""

    time_limit: float = TIME_LIMIT
    """The seconds that each child process may take."""

    @cached_property
    def loaded(self) -> tuple[Outcome, dict[str, Outcome]]:
        """How `plugin_list.load_all` went, in a process: see `isolated_load.load`."""
        return isolated_load.load(plugin_list.load_all, time_limit=self.time_limit)


def machine(_: DoctorContext) -> Iterator[Check]:
    """Look at Python, the platform and the processor."""
    yield Check("python", f"{platform.python_version()} ({sys.executable})")
    yield Check("platform", f"{sysconfig.get_platform()}, {' '.join(platform.libc_ver()).strip()}")
    yield Check("processors", str(len(os.sched_getaffinity(0))))


def torch(context: DoctorContext) -> Iterator[Check]:
    """Look at torch and torch_npu, and import them in processes of their own."""
    version, npu_version = distributions.version("torch"), distributions.version("torch_npu")
    if version is None:
        yield Check("torch", "not installed").with_problem(
            "torch is not installed", f"pip install 'torch>={OLDEST_TORCH}'"
        )
        return
    check = Check("torch", version or _UNREADABLE)
    if (major_minor(version) or TORCH_TARGET) < TORCH_TARGET:
        check = check.with_problem(
            f"torch {version} is older than {OLDEST_TORCH}, which ops are built for",
            f"pip install --upgrade 'torch>={OLDEST_TORCH}'",
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
    yield Check(
        "torch_npu", npu_version or ("not installed" if npu_version is None else _UNREADABLE)
    )
    if npu_version is not None:
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


def cann(_: DoctorContext) -> Iterator[Check]:
    """Look at the variables that name CANN's folders."""
    for name in FOLDERS:
        value = os.environ.get(name, "")
        check = Check(name, value or "not set")
        missing = [each for each in value.split(os.pathsep) if each and not Path(each).is_dir()]
        if missing:
            check = check.with_problem(
                f"{name} names {', '.join(missing)}, which is not there",
                f"correct {name}, or unset it; `source <CANN folder>/set_env.sh` sets it",
            )
        elif not value and name == FOLDERS[0] and distributions.version("torch_npu") is not None:
            check = check.with_note(
                "torch_npu is installed, but CANN's environment is not set",
                "run `source <CANN folder>/set_env.sh` before using an NPU",
            )
        yield check


def core(_: DoctorContext) -> Iterator[Check]:
    """Look at core's metadata and at who hides its package; runs nothing."""
    version = distributions.version(CORE)
    check = Check(CORE, version or "no metadata")
    if version is None:
        check = check.with_problem(f"{CORE} runs here but is not installed", f"install {CORE}")
    elif not version:
        check = check.with_problem(f"the metadata of {CORE} cannot be read", f"reinstall {CORE}")
    yield check
    expected = Path(__file__).resolve().parents[1] / _PACKAGE / "__init__.py"
    spec = importlib.util.find_spec(_PACKAGE)
    found = None if spec is None else spec.origin or str(spec.submodule_search_locations)
    if found is not None and Path(found).resolve() == expected:
        yield Check(_PACKAGE, str(expected.parent))
    elif found is None or not expected.is_file():
        yield Check(_PACKAGE, "not found").with_problem(
            f"{_PACKAGE} is not complete in {expected.parent}", f"reinstall {CORE}"
        )
    else:
        yield Check(_PACKAGE, found).with_problem(
            f"`import {_PACKAGE}` finds {found}, which hides core's own package {expected.parent}",
            "rename or remove it, or start Python in another folder",
        )


def variables(_: DoctorContext) -> Iterator[Check]:
    """Check each variable that is set; runs nothing."""
    plugins = [plugin.name for plugin in candidates.find()]
    warnings = {text.partition(" ")[0]: text for text in environment.read().warnings(plugins)}
    # The simulator checks its own variables, and a plugin its own.
    foreign = tuple(f"{PREFIX}{owner}_" for owner in ["SIM", *map(str.upper, plugins)])
    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    for name in names:
        # The value of any other variable may be a secret.
        check = Check(name, repr(os.environ[name]) if name in KNOWN else "set")
        if name in warnings:
            check = check.with_problem(warnings[name], f"correct {name}, or unset it")
        elif name == LOCKFILE:
            lock = lock_file.read(os.environ[name], this_host().trusted_owners)
            check = check.with_problem(lock.problem, lock.advice) if lock.problem else check
        elif name not in KNOWN and not name.startswith(foreign):
            # Compare without the prefix: all names have it, so any two would be similar.
            known = {each.removeprefix(PREFIX): each for each in KNOWN}
            near = find_similar(name.removeprefix(PREFIX), known)
            hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(KNOWN)}"
            check = check.with_problem(f"custom_pypto does not read {name}", hint)
        yield check
    if not names:
        yield Check(f"{PREFIX}*", "none is set")


def plugins(context: DoctorContext) -> Iterator[Check]:
    """Report how the load of every plugin in a process went."""
    outcome, ended = context.loaded
    loaded: Any = outcome.value if outcome.ok else {}
    check = Check(_IMPORT, "ok")
    if not outcome.ok:
        check = Check(_IMPORT, f"failed: {outcome.brief}").with_problem(
            f"`{_IMPORT}` failed, and no single plugin explains it: {outcome.failure}",
            "solve the problems above first; if there is none, choose plugins by"
            f" {PLUGINS}, or reinstall {CORE}",
        )
    elif ended:
        names = ", ".join(ended)
        check = Check(_IMPORT, f"works only without {names}").with_problem(
            f"`{_IMPORT}` ends the process or hangs while it loads {names}",
            f"set {DISABLE}={','.join(ended)}; see below",
        )
    yield check
    found = loaded.get("plugins") or [*map(_without_load, discovery.discover(environment.read()))]
    isolated_load.mark_ended(found, ended)
    for plugin in found:
        yield from _checks_of(plugin)
    if not found:
        yield Check("plugins", "none is installed").with_note(
            "there is no op without a plugin", HOW_TO_INSTALL_OPS
        )


def _without_load(plugin: InstalledPlugin) -> dict[str, Any]:
    """Return what of a plugin's record is known without loading it."""
    fields = ("name", "version", "distribution", "status", "reason")
    return {"ops": (), "cpu_isa": "", **{field: getattr(plugin, field) for field in fields}}


def _checks_of(plugin: dict[str, Any]) -> Iterator[Check]:
    name, status, isa = plugin["name"], Status(plugin["status"]), plugin["cpu_isa"]
    value = f"{plugin['version'] or '(no version)'} {status}"
    if status is Status.LOADED:
        ops = ", ".join(op["name"] for op in plugin["ops"])
        value += f" ({isa})" if isa else ""
        value += f" in {1000 * plugin['load_time']:.0f} ms: {ops}"
    check = Check(name, value)
    if status in (Status.REJECTED, Status.FAILED):
        reason = f"{name} {status.verb}: {plugin['reason']}"
        # The reason of a plugin that is rejected ends with other advice.
        other = "" if status is Status.REJECTED else "tell its author, "
        check = check.with_problem(reason, f"{other}or {uninstall(plugin['distribution'])}")
    elif status is Status.BLOCKED:
        check = check.with_note(f"{name} is blocked", plugin["reason"])
    elif isa.startswith(plugin_list.NO_ISA):
        check = check.with_problem(
            f"{name} cannot be called on a CPU: {isa.removeprefix(plugin_list.NO_ISA)}",
            f"set {CPU_ISA} to an instruction set of this machine, which a call of an op"
            " names, or unset it",
        )
    yield check
    for missing in plugin_list.describe_missing_kernels(plugin):
        yield Check(name, "an op without a kernel").with_problem(*missing)


def npu_kernels(context: DoctorContext) -> Iterator[Check]:
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
        yield from (plugin_list.describe_kernel(plugin, kernel) for kernel in kernels)
