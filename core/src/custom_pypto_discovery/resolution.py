"""Decides among plugins: names and ops that two provide, ops that one needs of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from custom_pypto_contract.errors import find_similar

from custom_pypto_discovery.environment import DISABLE
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family

_MOST_TO_COMPARE = 100


def resolve(plugins: Iterable[InstalledPlugin]) -> tuple[InstalledPlugin, ...]:
    """Return the plugins with each decided on.

    The accepted come first, in loading order: by name, each after the plugins whose ops it
    requires. The others follow by name. Two plugins with one name or one op are both rejected: the
    user chooses. A plugin that requires one that does not load gets that one's status.
    """
    decided = sorted(plugins, key=lambda each: each.order)
    decided = _reject_conflicts(decided)
    decided = _check_all_requirements(decided)
    ordered, circular = _in_loading_order([each for each in decided if _is_accepted(each)])
    others = [each for each in decided if not _is_accepted(each)]
    return (*ordered, *sorted([*others, *circular], key=lambda each: each.name))


def explain_requirement(op: str, provider: str, status: Status, reason: str) -> str:
    """Return the reason of a plugin that requires `op` of the plugin `provider`."""
    return f"requires the op {op!r} of the plugin {provider!r}, which {status.verb}: {reason}"


def _is_accepted(plugin: InstalledPlugin) -> bool:
    return plugin.status is Status.ACCEPTED


def _reject_conflicts(plugins: Sequence[InstalledPlugin]) -> list[InstalledPlugin]:
    accepted = list(filter(_is_accepted, plugins))
    providers = _providers(accepted)
    named: dict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in accepted:
        named[plugin.name].append(plugin)
    return [
        plugin.reject(reason)
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


def _check_all_requirements(plugins: list[InstalledPlugin]) -> list[InstalledPlugin]:
    """Check the requirements of each plugin, until nothing changes."""
    while True:
        providers = _providers(plugins)
        checked = [
            _check_requirements(plugin, plugins, providers) if _is_accepted(plugin) else plugin
            for plugin in plugins
        ]
        if checked == plugins:
            return plugins
        plugins = checked


def _providers(plugins: Iterable[InstalledPlugin]) -> Mapping[str, Sequence[InstalledPlugin]]:
    providers: dict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in plugins:
        for op in plugin.families:
            providers[op].append(plugin)
    return providers


def _check_requirements(
    plugin: InstalledPlugin,
    plugins: Sequence[InstalledPlugin],
    providers_of: Mapping[str, Sequence[InstalledPlugin]],
) -> InstalledPlugin:
    for op in plugin.requires_ops:
        providers = providers_of.get(op_family(op))
        if not providers:
            return plugin.reject(_explain_missing(op, plugin, plugins))
        if not any(map(_is_accepted, providers)):
            # Name a blocked one first: taking it out of the variable helps.
            first = min(providers, key=lambda each: each.status is not Status.BLOCKED)
            reason = explain_requirement(op, first.name, first.status, first.reason)
            return replace(plugin, status=first.status, reason=reason)
    return plugin


def _explain_missing(op: str, plugin: InstalledPlugin, plugins: Sequence[InstalledPlugin]) -> str:
    others = (each for each in plugins if _is_accepted(each) and each is not plugin)
    known = sorted({name for each in others for name in each.families})
    # The search is slow: with very many ops it would delay the import.
    near = find_similar(op, known) if len(known) <= _MOST_TO_COMPARE else []
    hint = f" (did its author mean {near[0]!r}?)" if near else ""
    return (
        f"requires the op {op!r}, which no installed plugin provides{hint}; install the plugin"
        " that provides it, its README says which"
    )


def _in_loading_order(
    accepted: Sequence[InstalledPlugin],
) -> tuple[list[InstalledPlugin], list[InstalledPlugin]]:
    """Return the plugins in loading order, and those with circular requirements, rejected."""
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
        plugin.reject(
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
