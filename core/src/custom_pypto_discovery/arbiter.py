"""Decides which plugins may load, before any code of theirs has run.

`judge` is a function of what was read from disk alone. `verdicts` reads and judges; core and the
command line call it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from importlib import metadata

from custom_pypto_contract import platforms
from custom_pypto_contract.manifest import CORE_ABI, Manifest

from custom_pypto_discovery import candidates, claim
from custom_pypto_discovery.claim import Claim, LibraryFile
from custom_pypto_discovery.environment import Environment

CORE = "custom-pypto-core"


class Decision(Enum):
    """What becomes of a plugin."""

    ACCEPTED = "accepted"
    BLOCKED = "blocked"
    QUARANTINED = "quarantined"


@dataclass(frozen=True)
class Verdict:
    """The decision on one candidate, with the reason when it is not accepted."""

    claim: Claim
    decision: Decision
    reason: str = ""

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.claim.candidate.name


@dataclass(frozen=True)
class Host:
    """What plugins are judged against. `torch` is (major, minor), None when it is not known."""

    platform: str
    core_abi: tuple[int, int] = CORE_ABI
    core_version: str = ""
    torch: tuple[int, int] | None = None
    trusted_owners: frozenset[int] = frozenset({0})


def this_host(core: str | None = None, torch: str | None = None) -> Host:
    """Return the host that this interpreter is.

    `core` and `torch` are the versions of core and torch; those that are not given are read from
    the metadata of what is installed.
    """
    return Host(
        platform=platforms.platform_tag(),
        core_version=_version(CORE) if core is None else core,
        torch=_major_minor(_version("torch") if torch is None else torch),
        trusted_owners=claim.trusted_owners(),
    )


def verdicts(environment: Environment, host: Host | None = None) -> tuple[Verdict, ...]:
    """Find the installed plugins, read their files and judge them, in the order of `judge`."""
    claims = [
        claim.read(found, with_library=environment.blocks(found.name) is None)
        for found in candidates.find()
    ]
    return judge(claims, environment, this_host() if host is None else host)


def judge(claims: Iterable[Claim], environment: Environment, host: Host) -> tuple[Verdict, ...]:
    """Return a verdict for each claim.

    First the accepted in the order in which they must load: by name, each after the plugins whose
    ops it requires. Then the others by name. Of two plugins that claim one name or one op the one
    whose distribution's name sorts first stays.
    """
    judged = [
        _alone(each, environment, host)
        for each in sorted(claims, key=lambda each: each.candidate.order)
    ]
    judged = _without_duplicates(judged)
    judged = _with_requirements(judged)
    ordered, circular = _in_loading_order([each for each in judged if _accepted(each)])
    refused = [each for each in judged if not _accepted(each)]
    return (*ordered, *sorted([*refused, *circular], key=lambda each: each.name))


def op_family(op: str) -> str:
    """Return the name by which `torch.ops` shows the op: ``foo`` for ``foo`` and ``foo.bar``."""
    return op.partition(".")[0]


def _accepted(verdict: Verdict) -> bool:
    return verdict.decision is Decision.ACCEPTED


def _quarantine(verdict: Verdict, reason: str) -> Verdict:
    return replace(verdict, decision=Decision.QUARANTINED, reason=reason)


def _ops(verdict: Verdict) -> tuple[str, ...]:
    """Return the families of ops that the plugin provides, each once."""
    found = verdict.claim.manifest
    return () if found is None else tuple(dict.fromkeys(op_family(op.name) for op in found.ops))


def _alone(each: Claim, environment: Environment, host: Host) -> Verdict:
    blocked = environment.blocks(each.candidate.name)
    if blocked is not None:
        return Verdict(each, Decision.BLOCKED, blocked)
    accepted = Verdict(each, Decision.ACCEPTED)
    if each.manifest is None:
        return _quarantine(accepted, each.problem)
    reason = (
        _identity(each, each.manifest)
        or _abi(each.manifest, host)
        or _platform(each.manifest, host)
        or _torch(each.manifest, host)
        or _library(each.library, each.manifest, host)
    )
    return _quarantine(accepted, reason) if reason else accepted


def _identity(each: Claim, found: Manifest) -> str:
    candidate = each.candidate
    if found.name != candidate.name:
        return (
            f"its entry point calls it {candidate.name!r}, its manifest {found.name!r};"
            " give the entry point the plugin's name and build it again"
        )
    if candidates.normalized(found.distribution) != candidates.normalized(candidate.distribution):
        return (
            f"{candidate.folder} belongs to the distribution {found.distribution}, not to"
            f" {candidate.distribution}; reinstall {candidate.distribution}"
        )
    if found.version != candidate.version:
        return (
            f"its files are of version {found.version}, but {candidate.distribution}"
            f" {candidate.version} is installed; reinstall {candidate.distribution}"
        )
    return ""


def _abi(found: Manifest, host: Host) -> str:
    need, have = found.core_abi, host.core_abi
    if need[0] == have[0] and need[1] <= have[1]:
        return ""
    core = f"{CORE} {host.core_version}".strip()
    if need > have:
        fix = f"Upgrade core: pip install --upgrade {CORE}"
    else:
        fix = (
            f"Upgrade the plugin: pip install --upgrade {found.distribution}; if there is no newer"
            f" version, it has to be built again with {core}"
        )
    return f"requires core ABI {_dotted(need)}, but {core} offers {_dotted(have)}. {fix}"


def _platform(found: Manifest, host: Host) -> str:
    if found.platform == host.platform:
        return ""
    return (
        f"was built for {found.platform}, but this Python runs on {host.platform}. Install the"
        f" wheel for this platform: pip install --force-reinstall --no-deps {found.distribution}"
    )


def _torch(found: Manifest, host: Host) -> str:
    need = _major_minor(found.torch_target)
    if need is None or host.torch is None or need <= host.torch:
        return ""
    return (
        f"requires torch {_dotted(need)} or newer, but torch {_dotted(host.torch)} is installed."
        f" Upgrade it: pip install --upgrade 'torch>={_dotted(need)}'"
    )


def _library(library: LibraryFile | None, found: Manifest, host: Host) -> str:
    reinstall = f"reinstall it: pip install --force-reinstall --no-deps {found.distribution}"
    if library is None:
        return "its library was not looked at"
    if library.problem:
        return f"{library.problem}; {reinstall}"
    if not library.inside_package:
        return (
            f"its library {found.library.path} leads out of its package, to {library.path}; a"
            f" library must be a file of its own package; {reinstall}"
        )
    for file in library.guarded:
        if file.world_writable:
            return (
                f"{file.path} can be changed by every user of this machine, who could so run code"
                f" as you; make it safe: chmod o-w {file.path}"
            )
        if file.owner not in host.trusted_owners:
            allowed = ", ".join(map(str, sorted(host.trusted_owners)))
            return (
                f"{file.path} belongs to the user id {file.owner}; allowed are {allowed} (root,"
                f" you, and the owner of core's files); {reinstall}"
            )
    if library.sha256 != found.library.sha256:
        return (
            f"its library {library.path} is not the one it was built with: sha256"
            f" {library.sha256[:16]}..., the manifest says {found.library.sha256[:16]}...;"
            f" {reinstall}"
        )
    return ""


def _without_duplicates(judged: Sequence[Verdict]) -> list[Verdict]:
    plugins: dict[str, Verdict] = {}
    providers: dict[str, Verdict] = {}
    kept = []
    for verdict in judged:
        if _accepted(verdict):
            if verdict.name in plugins:
                verdict = _quarantine(verdict, _same_name(verdict, plugins[verdict.name]))
            else:
                taken = [op for op in _ops(verdict) if op in providers]
                if taken:
                    verdict = _quarantine(verdict, _same_op(verdict, taken[0], providers[taken[0]]))
        if _accepted(verdict):
            plugins[verdict.name] = verdict
            providers.update(dict.fromkeys(_ops(verdict), verdict))
        kept.append(verdict)
    return kept


def _same_name(verdict: Verdict, first: Verdict) -> str:
    return (
        f"{first.claim.candidate.distribution} provides a plugin called {verdict.name!r} already,"
        f" and of two the first by distribution name stays; {_uninstall_one(verdict, first)}"
    )


def _same_op(verdict: Verdict, op: str, first: Verdict) -> str:
    return (
        f"the op {op!r} is provided by the plugin {first.name!r} of"
        f" {first.claim.candidate.distribution} already, and of two the first by distribution name"
        f" stays; {_uninstall_one(verdict, first)}"
    )


def _uninstall_one(verdict: Verdict, first: Verdict) -> str:
    ours, theirs = verdict.claim.candidate.distribution, first.claim.candidate.distribution
    if ours == theirs:
        return f"{ours} must have one entry point for each plugin"
    return f"pip uninstall {theirs} or {ours}"


def _with_requirements(judged: list[Verdict]) -> list[Verdict]:
    """Quarantine what requires an op that nobody accepted provides, until nothing changes."""
    while True:
        checked = [_requirement(each, judged) if _accepted(each) else each for each in judged]
        if checked == judged:
            return judged
        judged = checked


def _requirement(verdict: Verdict, judged: Sequence[Verdict]) -> Verdict:
    found = verdict.claim.manifest
    for op in () if found is None else found.requires_ops:
        family = op_family(op)
        providers = [each for each in judged if family in _ops(each)]
        if not any(map(_accepted, providers)):
            return _quarantine(verdict, _requires(op, verdict, providers, judged))
    return verdict


def _requires(
    op: str, verdict: Verdict, providers: Sequence[Verdict], judged: Sequence[Verdict]
) -> str:
    if providers:
        first = providers[0]
        return unmet(op, first.name, first.decision.value, first.reason)
    others = (each for each in judged if _accepted(each) and each is not verdict)
    known = sorted({name for each in others for name in _ops(each)})
    near = difflib.get_close_matches(op, known, n=1)
    hint = f" (did its author mean {near[0]!r}?)" if near else ""
    return (
        f"requires the op {op!r}, which no installed plugin provides{hint}; install the plugin"
        " that provides it, its README says which"
    )


def unmet(op: str, provider: str, state: str, reason: str) -> str:
    """Return the reason of a plugin that requires `op` of a plugin which is not loaded."""
    return f"requires the op {op!r} of the plugin {provider!r}, which is {state}: {reason}"


def _in_loading_order(accepted: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the plugins in loading order, and quarantined those that can never have their turn."""
    provider = {op: verdict.name for verdict in accepted for op in _ops(verdict)}
    waiting = {
        verdict.name: (verdict, {provider[op_family(op)] for op in _required(verdict)})
        for verdict in sorted(accepted, key=lambda each: each.name)
    }
    ordered: list[Verdict] = []
    while ready := next((name for name, (_, needs) in waiting.items() if not needs), None):
        ordered.append(waiting.pop(ready)[0])
        for _, needs in waiting.values():
            needs.discard(ready)
    needs_of = {name: sorted(needs) for name, (_, needs) in waiting.items()}
    stuck = [
        _quarantine(verdict, _circle(_find_circle(name, needs_of)))
        for name, (verdict, _) in waiting.items()
    ]
    return ordered, stuck


def _required(verdict: Verdict) -> tuple[str, ...]:
    return () if verdict.claim.manifest is None else verdict.claim.manifest.requires_ops


def _find_circle(name: str, needs_of: Mapping[str, Sequence[str]]) -> list[str]:
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = needs_of[name][0]
    return [*path[path.index(name) :], name]


def _circle(path: Sequence[str]) -> str:
    return (
        f"requires ops in a circle, so none can load first: {' -> '.join(path)};"
        " one of these plugins must stop requiring the other"
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _major_minor(version: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", version)
    return None if match is None else (int(match[1]), int(match[2]))


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution) or ""
    except Exception:
        # Missing or broken metadata: unknown, which forbids nothing.
        return ""
