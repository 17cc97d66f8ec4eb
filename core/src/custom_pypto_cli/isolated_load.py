"""Loads the plugins in other processes, and finds those that end or hang them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome


def load(
    function: Callable[..., object], *arguments: object, time_limit: float
) -> tuple[Outcome, dict[str, Outcome]]:
    """Call `function`, which loads the plugins, in a process without those that end it.

    All plugins are tried together first; only if that fails, others follow, of ``time_limit``
    seconds each. Returns the last outcome, and the outcome of each plugin that was left out.
    """
    ended: dict[str, Outcome] = {}
    while True:
        blocked = without(ended)
        outcome = subprocess_call.call(
            function, *arguments, time_limit=time_limit, environment=blocked
        )
        found = None if outcome.ok else _find_culprit(outcome, ended, blocked, time_limit)
        if found is None:
            return outcome, ended
        ended.update(found)


def without(plugins: Iterable[str]) -> dict[str, str]:
    """Return the variables of a process that loads all plugins but these."""
    return {environment.DISABLE: _join([*environment.read().disable, *plugins])}


def mark_ended(plugins: Iterable[dict[str, Any]], ended: dict[str, Outcome]) -> None:
    """Have the records of plugins say that they failed, if `load` left them out."""
    for plugin in plugins:
        name = plugin["name"]
        if name in ended:
            uninstall = f"pip uninstall {shlex.quote(plugin['distribution'])}"
            reason = (
                f"loading it ended the process: {ended[name].failure}\n"
                f"set {environment.DISABLE}={name}, or {uninstall}"
            )
            plugin.update(status=str(Status.FAILED), reason=reason)


def _find_culprit(
    outcome: Outcome, ended: Iterable[str], blocked: dict[str, str], time_limit: float
) -> dict[str, Outcome] | None:
    """Return the name of a plugin that ends its process, and how; None if no single one does."""
    suspect = outcome.progress
    if isinstance(suspect, str) and suspect and suspect not in ended and outcome.timed_out:
        # To wait for it once more would tell nothing new, unless it was left out already.
        return {suspect: outcome}
    if not suspect and not _try([], blocked, time_limit).ok:
        return None
    installed = discovery.discover(environment.read())
    accepted = [each for each in installed if each.status is Status.ACCEPTED]
    for plugin in sorted(accepted, key=lambda each: each.name != suspect):
        if plugin.name not in ended:
            alone = _try(_names_of_needed(plugin, installed), blocked, time_limit)
            if not alone.ok:
                return {plugin.name: alone}
    return None


def _try(names: Iterable[str], blocked: dict[str, str], time_limit: float) -> Outcome:
    """Load the plugins `names` alone."""
    variables = {**blocked, environment.ALLOW: _join(names)}
    return subprocess_call.call(plugin_list.load_all, time_limit=time_limit, environment=variables)


def _names_of_needed(plugin: InstalledPlugin, installed: Sequence[InstalledPlugin]) -> set[str]:
    """Return the names of the plugin and of those whose ops it requires, directly or not."""
    providers = {family: other for other in installed for family in other.families}
    names: set[str] = set()
    waiting = [plugin]
    while waiting:
        current = waiting.pop()
        if current.name not in names:
            names.add(current.name)
            families = map(op_family, current.requires_ops)
            waiting += [providers[family] for family in families if family in providers]
    return names


def _join(names: Iterable[str]) -> str:
    return ",".join(sorted(names))
