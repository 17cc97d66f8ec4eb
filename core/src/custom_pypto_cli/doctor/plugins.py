"""The plugins: their files as discovery sees them, and the result of loading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from custom_pypto_contract import variables
from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

from custom_pypto_cli import isolated_load, plugin_list
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome


def checks(context: DoctorContext) -> Iterator[Check]:
    """Inspect every plugin here, and report how the load of them in a process went."""
    installed = discovery.discover(environment.read())
    outcome, ended = context.loaded
    yield _check_import(outcome, ended)
    if not installed:
        yield Check("plugins", "none is installed").with_note(
            "there is no op without a plugin", HOW_TO_INSTALL_OPS
        )
    loaded = cast("dict[str, Any]", outcome.value) if outcome.ok else {}
    isolated_load.mark_ended(loaded.get("plugins", ()), ended)
    by_key = {(each["distribution"], each["name"]): each for each in loaded.get("plugins", ())}
    for plugin in installed:
        record = by_key.get((plugin.distribution, plugin.name))
        if record is not None:
            yield _check_loaded(plugin, record)
            for problem, advice in plugin_list.describe_missing_kernels(record):
                without = Check(plugin.name, "an op without a kernel")
                yield without.with_problem(problem, advice)
        else:
            yield _check_status(plugin, plugin.status, plugin.reason)
        for folder in plugin.leftovers:
            leftover = Check("left over", str(folder))
            yield leftover.with_note(*plugin_list.describe_leftover(folder))
    for op in loaded.get("unclaimed", ()):
        yield Check(op, "an op that no manifest lists").with_problem(
            f"a plugin, or what one imports, registers the op {op!r}, which no manifest lists",
            f"set {environment.ALLOW} to one plugin after the other to see which it is",
        )


def _check_import(outcome: Outcome, ended: Mapping[str, Outcome]) -> Check:
    name = "import custom_pypto.core"
    if not outcome.ok:
        return Check(name, f"failed: {outcome.brief}").with_problem(
            f"`{name}` failed, and no single plugin explains it: {outcome.failure}",
            "solve the problems above first; if there is none, choose plugins by"
            f" {environment.ALLOW}, or reinstall custom-pypto-core",
        )
    if ended:
        names = ", ".join(ended)
        return Check(name, f"works only without {names}").with_problem(
            f"`{name}` ends the process or hangs while it loads {names}",
            f"set {environment.DISABLE}={','.join(ended)}; see below",
        )
    return Check(name, "ok")


def _check_loaded(plugin: InstalledPlugin, record: dict[str, Any]) -> Check:
    check = _check_status(plugin, Status(record["status"]), record["reason"], _contents(record))
    isa = record["cpu_isa"]
    if not isa.startswith(plugin_list.NO_ISA):
        return check
    return check.with_problem(
        f"{plugin.name} cannot be called on a CPU: {isa.removeprefix(plugin_list.NO_ISA)}",
        f"set {variables.CPU_ISA} to an instruction set of this machine, which a call of an op"
        " names, or unset it",
    )


def _check_status(
    plugin: InstalledPlugin, status: Status, reason: str, contents: str = ""
) -> Check:
    version = plugin.version or "(no version)"
    check = Check(plugin.name, " ".join(filter(None, [version, str(status), contents])))
    if status in (Status.REJECTED, Status.FAILED):
        return check.with_problem(f"{plugin.name} {status.verb}: {reason}", _remedy(plugin))
    if status is Status.BLOCKED:
        return check.with_note(f"{plugin.name} is blocked", reason)
    return check


def _remedy(plugin: InstalledPlugin) -> str:
    uninstall = f"pip uninstall {plugin.distribution}"
    if plugin.status is Status.ACCEPTED:
        return f"tell its author; until it is mended, {uninstall}"
    if plugin.manifest is None:
        return f"reinstall it, or {uninstall}"
    # Discovery's reasons end in what to do.
    return f"or {uninstall}"


def _contents(record: dict[str, Any]) -> str:
    ops = ", ".join(op["name"] for op in record["ops"])
    return f"in {1000 * record['load_time']:.0f} ms: {ops}" if record["status"] == "loaded" else ""
