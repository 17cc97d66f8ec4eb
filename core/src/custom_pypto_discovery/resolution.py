"""Decides among plugins: names and ops that two provide, ops that one needs of another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from custom_pypto_contract.variables import DISABLE

from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family, uninstall


def resolve(plugins: Iterable[InstalledPlugin]) -> tuple[InstalledPlugin, ...]:
    """Return the plugins with each decided on.

    The accepted come first, in loading order: those that require no op by name, then each after the
    plugins whose ops it requires. The others follow by name. Two plugins with one name or one op
    are both rejected: the user chooses. A plugin that requires one that does not load gets that
    one's status.
    """
    decided = _reject_conflicts(sorted(plugins, key=lambda each: each.order))
    while (checked := _check_requirements(decided)) != decided:
        decided = checked
    accepted = {each.name: each for each in filter(_is_accepted, decided)}
    others = [each for each in decided if not _is_accepted(each)]
    try:
        ordered = [accepted[name] for name in _loading_order(accepted)]
    except CycleError as error:
        circle = error.args[1][::-1]
        reason = (
            f"circular requires-ops: {' -> '.join(circle)};"
            " one of these plugins must stop requiring the other"
        )
        rejected = [each.reject(reason) for name, each in accepted.items() if name in circle]
        rest = [each for name, each in accepted.items() if name not in circle]
        return resolve([*others, *rejected, *rest])
    return (*ordered, *sorted(others, key=lambda each: each.name))


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
        choices = list(map(uninstall, distributions))
        return (
            f"{' and '.join(distributions)} each provide a plugin called {plugin.name!r}, so none"
            f" of them loads; leave out all but one: {', or '.join(choices)}"
        )
    for op in plugin.families:
        if len(same := providers[op]) > 1:
            owners = [f"the plugin {each.name!r} of {each.distribution}" for each in same]
            choices = [
                f"{DISABLE}={each.name} (or {uninstall(each.distribution)})" for each in same
            ]
            return (
                f"{' and '.join(owners)} each provide the op {op!r}, so none of them loads;"
                f" leave out all but one: {', or '.join(choices)}"
            )
    return ""


def _check_requirements(plugins: Sequence[InstalledPlugin]) -> list[InstalledPlugin]:
    """Check the requirements of each plugin once: what this changes may concern others."""
    providers = _providers(plugins)
    return [_checked(each, providers) if _is_accepted(each) else each for each in plugins]


def _providers(plugins: Iterable[InstalledPlugin]) -> Mapping[str, Sequence[InstalledPlugin]]:
    providers: dict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in plugins:
        for op in plugin.families:
            providers[op].append(plugin)
    return providers


def _checked(
    plugin: InstalledPlugin, providers_of: Mapping[str, Sequence[InstalledPlugin]]
) -> InstalledPlugin:
    for op in plugin.requires_ops:
        providers = providers_of.get(op_family(op))
        if not providers:
            return plugin.reject(
                f"requires the op {op!r}, which no installed plugin provides; install the plugin"
                " that provides it, its README says which"
            )
        if not any(map(_is_accepted, providers)):
            # Name a blocked one first: taking it out of the variable helps.
            first = min(providers, key=lambda each: each.status is not Status.BLOCKED)
            reason = explain_requirement(op, first.name, first.status, first.reason)
            return replace(plugin, status=first.status, reason=reason)
    return plugin


def _loading_order(accepted: Mapping[str, InstalledPlugin]) -> list[str]:
    """Return the names in loading order. Raises CycleError."""
    provider = {op: name for name, plugin in accepted.items() for op in plugin.families}
    sorter = TopologicalSorter(dict.fromkeys(sorted(accepted), ()))
    for name, plugin in accepted.items():
        sorter.add(name, *(provider[op_family(op)] for op in plugin.requires_ops))
    return list(sorter.static_order())
