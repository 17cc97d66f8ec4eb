"""The plugins: the result of loading them, or their files as discovery sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from custom_pypto_contract import variables
from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

from custom_pypto_cli import isolated_load, plugin_list
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

_IMPORT = "import custom_pypto.core"


def checks(context: DoctorContext) -> Iterator[Check]:
    """Report how the load of every plugin in a process went."""
    outcome, ended = context.loaded
    loaded: Any = outcome.value if outcome.ok else {}
    check = Check(_IMPORT, "ok")
    if not outcome.ok:
        check = Check(_IMPORT, f"failed: {outcome.brief}").with_problem(
            f"`{_IMPORT}` failed, and no single plugin explains it: {outcome.failure}",
            "solve the problems above first; if there is none, choose plugins by"
            f" {environment.ALLOW}, or reinstall custom-pypto-core",
        )
    elif ended:
        names = ", ".join(ended)
        check = Check(_IMPORT, f"works only without {names}").with_problem(
            f"`{_IMPORT}` ends the process or hangs while it loads {names}",
            f"set {environment.DISABLE}={','.join(ended)}; see below",
        )
    yield check
    plugins = loaded.get("plugins") or [*map(_without_load, discovery.discover(environment.read()))]
    isolated_load.mark_ended(plugins, ended)
    for plugin in plugins:
        yield from _checks_of(plugin)
    if not plugins:
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
        value += f" in {1000 * plugin['load_time']:.0f} ms: {ops}"
    check = Check(name, value)
    if status in (Status.REJECTED, Status.FAILED):
        reason = f"{name} {status.verb}: {plugin['reason']}"
        check = check.with_problem(reason, f"or pip uninstall {plugin['distribution']}")
    elif status is Status.BLOCKED:
        check = check.with_note(f"{name} is blocked", plugin["reason"])
    elif isa.startswith(plugin_list.NO_ISA):
        check = check.with_problem(
            f"{name} cannot be called on a CPU: {isa.removeprefix(plugin_list.NO_ISA)}",
            f"set {variables.CPU_ISA} to an instruction set of this machine, which a call of an op"
            " names, or unset it",
        )
    yield check
    for missing in plugin_list.describe_missing_kernels(plugin):
        yield Check(name, "an op without a kernel").with_problem(*missing)
