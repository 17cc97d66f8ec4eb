"""Decides among plugins: names and ops that two of them want, and ops that one needs of another."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from custom_pypto_discovery.environment import DISABLE
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family


def resolve(plugins: Iterable[InstalledPlugin]) -> tuple[InstalledPlugin, ...]:
    """Return the plugins with each decided on.

    First the accepted in the order in which they must load: by name, each after the plugins whose
    ops it requires. Then the others by name. Of two that want one name or one op both are rejected:
    the user chooses. What requires a plugin that does not load does not load either, and has its
    status.
    """
    decided = sorted(plugins, key=lambda each: each.order)
    decided = _without_conflicts(decided)
    decided = _with_requirements(decided)
    ordered, circular = _in_loading_order([each for each in decided if _is_accepted(each)])
    others = [each for each in decided if not _is_accepted(each)]
    return (*ordered, *sorted([*others, *circular], key=lambda each: each.name))


def needs(op: str, provider: str, status: Status, reason: str) -> str:
    """Return the reason of a plugin that requires `op` of the plugin `provider`."""
    return f"requires the op {op!r} of the plugin {provider!r}, which {status.verb}: {reason}"


def _is_accepted(plugin: InstalledPlugin) -> bool:
    return plugin.status is Status.ACCEPTED


def _without_conflicts(plugins: Sequence[InstalledPlugin]) -> list[InstalledPlugin]:
    named: dict[str, list[InstalledPlugin]] = defaultdict(list)
    providers: dict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in filter(_is_accepted, plugins):
        named[plugin.name].append(plugin)
        for op in plugin.families:
            providers[op].append(plugin)
    return [
        plugin.rejected(reason)
        if _is_accepted(plugin) and (reason := _conflict(plugin, named, providers))
        else plugin
        for plugin in plugins
    ]


def _conflict(
    plugin: InstalledPlugin,
    named: Mapping[str, Sequence[InstalledPlugin]],
    providers: Mapping[str, Sequence[InstalledPlugin]],
) -> str:
    if len(same := named[plugin.name]) > 1:
        distributions = list(dict.fromkeys(each.distribution for each in same))
        if len(distributions) == 1:
            return (
                f"{distributions[0]} has {len(same)} entry points called {plugin.name!r}, so none"
                " loads; its author must give each plugin a name of its own"
            )
        choices = [f"pip uninstall {each}" for each in distributions]
        return (
            f"{' and '.join(distributions)} each provide a plugin called {plugin.name!r}, so none"
            f" of them loads; leave out all but one: {', or '.join(choices)}"
        )
    for op in plugin.families:
        if len(same := providers[op]) > 1:
            owners = [f"the plugin {each.name!r} of {each.distribution}" for each in same]
            choices = [
                f"{DISABLE}={each.name} (or pip uninstall {each.distribution})" for each in same
            ]
            return (
                f"{' and '.join(owners)} each provide the op {op!r}, so none of them loads;"
                f" leave out all but one: {', or '.join(choices)}"
            )
    return ""


def _with_requirements(plugins: list[InstalledPlugin]) -> list[InstalledPlugin]:
    """Decide on what requires an op that nobody accepted provides, until nothing changes."""
    while True:
        checked = [
            _required(plugin, plugins) if _is_accepted(plugin) else plugin for plugin in plugins
        ]
        if checked == plugins:
            return plugins
        plugins = checked


def _required(plugin: InstalledPlugin, plugins: Sequence[InstalledPlugin]) -> InstalledPlugin:
    for op in plugin.requires_ops:
        providers = [each for each in plugins if op_family(op) in each.families]
        if not providers:
            return plugin.rejected(_nobody_provides(op, plugin, plugins))
        if not any(map(_is_accepted, providers)):
            # To take it out of a variable helps: of several the blocked one is the one to name.
            first = min(providers, key=lambda each: each.status is not Status.BLOCKED)
            reason = needs(op, first.name, first.status, first.reason)
            return replace(plugin, status=first.status, reason=reason)
    return plugin


def _nobody_provides(op: str, plugin: InstalledPlugin, plugins: Sequence[InstalledPlugin]) -> str:
    others = (each for each in plugins if _is_accepted(each) and each is not plugin)
    known = sorted({name for each in others for name in each.families})
    near = difflib.get_close_matches(op, known, n=1)
    hint = f" (did its author mean {near[0]!r}?)" if near else ""
    return (
        f"requires the op {op!r}, which no installed plugin provides{hint}; install the plugin"
        " that provides it, its README says which"
    )


def _in_loading_order(
    accepted: Sequence[InstalledPlugin],
) -> tuple[list[InstalledPlugin], list[InstalledPlugin]]:
    """Return the plugins in loading order, and rejected those that can never have their turn."""
    provider = {op: plugin.name for plugin in accepted for op in plugin.families}
    waiting = {
        plugin.name: (plugin, {provider[op_family(op)] for op in plugin.requires_ops})
        for plugin in sorted(accepted, key=lambda each: each.name)
    }
    ordered: list[InstalledPlugin] = []
    while ready := next((name for name, (_, lacks) in waiting.items() if not lacks), None):
        ordered.append(waiting.pop(ready)[0])
        for _, lacks in waiting.values():
            lacks.discard(ready)
    lacks_of = {name: sorted(lacks) for name, (_, lacks) in waiting.items()}
    circular = [
        plugin.rejected(
            f"circular requires-ops: {' -> '.join(_circle(name, lacks_of))};"
            " one of these plugins must stop requiring the other"
        )
        for name, (plugin, _) in waiting.items()
    ]
    return ordered, circular


def _circle(name: str, lacks_of: Mapping[str, Sequence[str]]) -> list[str]:
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = lacks_of[name][0]
    return [*path[path.index(name) :], name]
