"""The plugins: what the arbiter says of their files, and what came of loading them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from custom_pypto_discovery import arbiter, environment
from custom_pypto_discovery.arbiter import Decision, Verdict

from custom_pypto_cli import child
from custom_pypto_cli.probes.probe import Probe, followed
from custom_pypto_cli.records import NO_LEVEL, Plugin, leftover_text

_LOAD = """from custom_pypto_cli import records
plugins = records.load()
report([plugins, [records.cpu_level(plugin) for plugin in plugins]])"""


def probes(time_limit: float) -> Iterator[Probe]:
    """Judge every plugin here, then load them in a child, for at most ``time_limit`` seconds."""
    verdicts = arbiter.verdicts(environment.read())
    outcome = child.run(_LOAD, time_limit=time_limit)
    core = outcome if outcome.ok else _without_plugins(time_limit)
    yield _import(outcome, core)
    if not verdicts:
        yield Probe("plugins", "none is installed").noted(
            "there is no op without a plugin", "install one, such as custom-pypto-add-custom"
        )
    loaded, levels = (
        cast("tuple[list[Plugin], list[str]]", outcome.value) if outcome.ok else ([], [])
    )
    records = {
        (plugin["distribution"], plugin["name"]): (plugin, level)
        for plugin, level in zip(loaded, levels, strict=True)
    }
    for verdict in verdicts:
        key = (verdict.claim.candidate.distribution, verdict.name)
        record, level = records.get(key, (None, ""))
        if record is not None:
            probe = _told(verdict, record["status"], record["reason"], _contents(record))
            yield _called_on_cpu(probe, verdict.name, level)
        elif verdict.decision is Decision.ACCEPTED and core.ok:
            yield _tried_alone(verdict, verdicts, time_limit)
        else:
            yield _told(verdict, verdict.decision.value, verdict.reason)
        for folder in map(str, verdict.claim.candidate.leftovers):
            yield Probe("left over", folder).noted(*leftover_text(folder))


def _without_plugins(time_limit: float) -> child.Outcome:
    return child.run(_LOAD, time_limit=time_limit, environment={environment.ALLOW: ""})


def _import(outcome: child.Outcome, core: child.Outcome) -> Probe:
    name = "import custom_pypto.core"
    if outcome.ok:
        return Probe(name, "ok")
    if core.ok:
        return Probe(name, f"failed: {outcome.brief}").wrong(
            followed(f"`{name}` failed: {outcome.failure}", "without plugins it works"),
            "see below which plugin it is; until then set CUSTOM_PYPTO_PLUGINS to those you need",
        )
    return Probe(name, f"failed: {core.brief}").wrong(
        f"`{name}` failed, even without plugins: {core.failure}",
        "solve the problems above first; if there is none, reinstall custom-pypto-core",
    )


def _told(verdict: Verdict, status: str, reason: str, contents: str = "") -> Probe:
    probe = Probe(verdict.name, " ".join(filter(None, [_version(verdict), status, contents])))
    if status == Decision.QUARANTINED.value:
        return probe.wrong(f"{verdict.name} is quarantined: {reason}", _remedy(verdict))
    if status == Decision.BLOCKED.value:
        return probe.noted(f"{verdict.name} is blocked", reason)
    return probe


def _called_on_cpu(probe: Probe, plugin: str, level: str) -> Probe:
    """Say so where every call of the plugin's ops on a CPU will fail."""
    if not level.startswith(NO_LEVEL):
        return probe
    return probe.wrong(
        f"{plugin} cannot be called on a CPU: {level.removeprefix(NO_LEVEL)}",
        "set CUSTOM_PYPTO_CPU_ISA to a level of this machine, which a call of an op names, or"
        " unset it",
    )


def _remedy(verdict: Verdict) -> str:
    uninstall = f"pip uninstall {verdict.claim.candidate.distribution}"
    if verdict.decision is Decision.ACCEPTED:
        return f"tell its author; until it is mended, {uninstall}"
    if verdict.claim.manifest is None:
        return f"reinstall it, or {uninstall}"
    # The arbiter's reasons end in what to do.
    return f"or {uninstall}"


def _tried_alone(verdict: Verdict, verdicts: tuple[Verdict, ...], time_limit: float) -> Probe:
    """Load a plugin without those it does not need, to find out whose fault a failed import is."""
    names = ",".join(sorted(_needed(verdict, verdicts)))
    outcome = child.run(_LOAD, time_limit=time_limit, environment={environment.ALLOW: names})
    if outcome.ok:
        return Probe(verdict.name, f"{_version(verdict)} accepted, loads with {names} alone")
    return Probe(verdict.name, f"{_version(verdict)} accepted, loading it failed").wrong(
        f"loading {verdict.name} with CUSTOM_PYPTO_PLUGINS={names} failed: {outcome.failure}",
        f"set CUSTOM_PYPTO_DISABLE={verdict.name}, or pip uninstall "
        f"{verdict.claim.candidate.distribution}",
    )


def _needed(verdict: Verdict, verdicts: tuple[Verdict, ...]) -> set[str]:
    """Return the names of the plugin and of those whose ops it requires, directly or not."""
    providers = {
        arbiter.op_family(op.name): other
        for other in verdicts
        if other.claim.manifest is not None
        for op in other.claim.manifest.ops
    }
    names: set[str] = set()
    waiting = [verdict]
    while waiting:
        current = waiting.pop()
        if current.name not in names and current.claim.manifest is not None:
            names.add(current.name)
            families = map(arbiter.op_family, current.claim.manifest.requires_ops)
            waiting += [providers[family] for family in families if family in providers]
    return names


def _contents(record: Plugin) -> str:
    ops = ", ".join(op["name"] for op in record["ops"])
    return f"in {1000 * record['load_time']:.0f} ms: {ops}" if record["status"] == "loaded" else ""


def _version(verdict: Verdict) -> str:
    return verdict.claim.candidate.version or "(no version)"
