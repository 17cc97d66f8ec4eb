"""Loads the plugins in other processes, and finds those that end or hang them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from custom_pypto_contract.variables import DISABLE, PLUGINS
from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.installed_plugin import Status, uninstall

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome


def load(
    function: Callable[..., object], *arguments: object, time_limit: float
) -> tuple[Outcome, dict[str, Outcome]]:
    """Call `function`, which loads the plugins, in a process without those that end it.

    All plugins are tried together first. If that fails, others follow, of ``time_limit`` seconds
    each, to find the first plugin in loading order that ends its process after those before it.
    Returns the last outcome, and the outcome of each plugin that was left out.
    """
    ended: dict[str, Outcome] = {}
    while True:
        blocked = without(ended)
        outcome = subprocess_call.call(
            function, *arguments, time_limit=time_limit, environment=blocked
        )
        found = {} if outcome.ok else _find_culprit(outcome, ended, blocked, time_limit)
        if not found:
            return outcome, ended
        ended.update(found)


def without(plugins: Iterable[str]) -> dict[str, str]:
    """Return the variables of a process that loads all plugins but these."""
    return {DISABLE: ",".join(sorted([*environment.read().disable, *plugins]))}


def mark_ended(plugins: Iterable[dict[str, Any]], ended: dict[str, Outcome]) -> None:
    """Have the records of plugins say that they failed, if `load` left them out."""
    for plugin in plugins:
        name = plugin["name"]
        if name in ended:
            reason = (
                f"loading it ended the process: {ended[name].failure}\n"
                f"set {DISABLE}={name}, or {uninstall(plugin['distribution'])}"
            )
            plugin.update(status=str(Status.FAILED), reason=reason)


def _find_culprit(
    outcome: Outcome, ended: Iterable[str], blocked: dict[str, str], time_limit: float
) -> dict[str, Outcome]:
    """Return the name of the plugin that ends its process, and how; empty if none does."""
    installed = discovery.discover(environment.read())
    accepted = [each.name for each in installed if each.status is Status.ACCEPTED]
    # Each comes after those that it needs.
    names = [name for name in accepted if name not in ended]
    outcomes: dict[int, Outcome] = {}

    def ends(count: int) -> bool:
        variables = {**blocked, PLUGINS: ",".join(names[:count])}
        outcomes[count] = subprocess_call.call(
            plugin_list.load_all, time_limit=time_limit, environment=variables
        )
        return not outcomes[count].ok

    suspect = outcome.progress
    if isinstance(suspect, str) and suspect in names:
        # A second wait for a plugin that hangs tells nothing new.
        if outcome.timed_out or not ends(names.index(suspect)):
            return {suspect: outcome}
    elif ends(0):
        return {}
    count = bisect_left(range(len(names) + 1), True, lo=1, key=ends)
    return {names[count - 1]: outcomes[count]} if count <= len(names) else {}
