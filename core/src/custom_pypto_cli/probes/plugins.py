"""The plugins: their files as discovery sees them, and the result of loading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from custom_pypto_contract import variables
from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

from custom_pypto_cli import attempts, records
from custom_pypto_cli.child import Outcome
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial


def probes(trial: Trial) -> Iterator[Probe]:
    """Inspect every plugin here, and report how the load of them in a child went."""
    installed = discovery.discover(environment.read())
    outcome, ended = trial.loaded
    yield _probe_import(outcome, ended)
    if not installed:
        yield Probe("plugins", "none is installed").with_note(
            "there is no op without a plugin", "install one, such as custom-pypto-add-custom"
        )
    loaded = cast("dict[str, Any]", outcome.value) if outcome.ok else {}
    attempts.mark_ended(loaded.get("plugins", ()), ended)
    by_key = {(each["distribution"], each["name"]): each for each in loaded.get("plugins", ())}
    for plugin in installed:
        record = by_key.get((plugin.distribution, plugin.name))
        if record is not None:
            yield _probe_loaded(plugin, record)
            for problem, advice in records.describe_missing_kernels(record):
                without = Probe(plugin.name, "an op without a kernel")
                yield without.with_problem(problem, advice)
        else:
            yield _probe_status(plugin, plugin.status, plugin.reason)
        for folder in plugin.leftovers:
            yield Probe("left over", str(folder)).with_note(*records.describe_leftover(folder))


def _probe_import(outcome: Outcome, ended: Mapping[str, Outcome]) -> Probe:
    name = "import custom_pypto.core"
    if not outcome.ok:
        return Probe(name, f"failed: {outcome.brief}").with_problem(
            f"`{name}` failed, and no single plugin explains it: {outcome.failure}",
            "solve the problems above first; if there is none, choose plugins by"
            f" {environment.ALLOW}, or reinstall custom-pypto-core",
        )
    if ended:
        names = ", ".join(ended)
        return Probe(name, f"works only without {names}").with_problem(
            f"`{name}` ends the process or hangs while it loads {names}",
            f"set {environment.DISABLE}={','.join(ended)}; see below",
        )
    return Probe(name, "ok")


def _probe_loaded(plugin: InstalledPlugin, record: dict[str, Any]) -> Probe:
    probe = _probe_status(plugin, Status(record["status"]), record["reason"], _contents(record))
    isa = record["cpu_isa"]
    if not isa.startswith(records.NO_ISA):
        return probe
    return probe.with_problem(
        f"{plugin.name} cannot be called on a CPU: {isa.removeprefix(records.NO_ISA)}",
        f"set {variables.CPU_ISA} to an instruction set of this machine, which a call of an op"
        " names, or unset it",
    )


def _probe_status(
    plugin: InstalledPlugin, status: Status, reason: str, contents: str = ""
) -> Probe:
    probe = Probe(plugin.name, " ".join(filter(None, [_version(plugin), str(status), contents])))
    if status in (Status.REJECTED, Status.FAILED):
        return probe.with_problem(f"{plugin.name} {status.verb}: {reason}", _remedy(plugin))
    if status is Status.BLOCKED:
        return probe.with_note(f"{plugin.name} is blocked", reason)
    return probe


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


def _version(plugin: InstalledPlugin) -> str:
    return plugin.version or "(no version)"
