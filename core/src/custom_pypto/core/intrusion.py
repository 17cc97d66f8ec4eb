"""Takes back what a plugin registered in our namespace beside its own ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from custom_pypto_discovery.environment import DISABLE
from custom_pypto_discovery.installed_plugin import Status, op_family

from custom_pypto.core import dispatcher, namespace
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.registrations import Registrations, destroy_libraries, find_origins


def take_back(
    culprit: Plugin,
    plugins: Sequence[Plugin],
    registrations: Registrations,
    load: Callable[[Plugin], None],
) -> None:
    """Undo what `culprit`, which has failed, has left registered for declared ops.

    What torch.library registered is destroyed. A static initialiser's registrations stay; a plugin
    with kernels for the same keys is loaded again by `load`, which hides them. Any other fails.
    """
    changed = registrations.changed()
    if not changed:
        return
    _destroy(changed, plugins)
    keys = registrations.keys(changed)
    changed = registrations.changed()
    registrations.accept(changed)
    for plugin in plugins:
        own = set(changed).intersection(plugin.op_names)
        if not own:
            continue
        if plugin.status is Status.LOADED:
            plugin.set_aside(Status.FAILED, "")
            load(plugin)
            if plugin.status is Status.LOADED and registrations.keys(own) == {
                op: keys[op] for op in own
            }:
                continue
        if plugin is not culprit:
            plugin.set_aside(
                Status.FAILED,
                f"{culprit.title} changed its op {min(own)!r} in a way that cannot be taken back;"
                f" set {DISABLE}={culprit.name}",
            )
            registrations.accept(own)
        _refuse(own, plugin)


def set_undeclared_aside(
    tried: Sequence[Plugin], plugins: Sequence[Plugin], registrations: Registrations
) -> list[str]:
    """Set the plugins aside that registered ops which no manifest lists.

    `tried` are those whose code has run since `registrations` were taken. Returns the ops for which
    no plugin is known.
    """
    found = {
        op: None if op in registrations.earlier else _find_culprit(op, tried)
        for op in registrations.undeclared()
    }
    for op, culprit in found.items():
        if culprit is not None and culprit.status is Status.LOADED:
            culprit.set_aside(
                Status.FAILED,
                f"it registers the op {op!r}, which its manifest does not list: describe it in"
                " ops.toml, or do not register it, and build the plugin again",
            )
    _destroy([op for op, culprit in found.items() if culprit is not None], plugins)
    for op in registrations.undeclared():
        if (culprit := found[op]) is not None:
            _refuse([op], culprit)
    return [op for op, culprit in found.items() if culprit is None]


def _destroy(ops: Iterable[str], plugins: Iterable[Plugin]) -> None:
    loaded = [plugin for plugin in plugins if plugin.status is Status.LOADED]
    destroy_libraries(ops, [plugin.python_kernels.library for plugin in loaded])


def _refuse(ops: Iterable[str], plugin: Plugin) -> None:
    """Have `torch.ops` say that `plugin` failed, rather than find what is left of `ops`."""
    left = {op_family(op) for op in ops if dispatcher.dump_registration(op)}
    namespace.forget(left)
    plugin.refused_ops |= left


def _find_culprit(op: str, tried: Sequence[Plugin]) -> Plugin | None:
    files = find_origins(op)
    candidates = [plugin for plugin in tried if any(map(plugin.holds, files))] or [
        plugin for plugin in tried if plugin.declares(op)
    ]
    return candidates[0] if len(candidates) == 1 else None
