"""Compares what is registered in our namespace with what the plugins' manifests say.

A plugin that registers more, or changes an op of another plugin, fails, and all that core did for
it is undone. What the plugin registered by other ways may stay; the ops that have it then refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from custom_pypto_contract.variables import DISABLE
from custom_pypto_discovery.installed_plugin import Status

from custom_pypto.core import dispatcher
from custom_pypto.core.errors import LoadError
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.records import NAMESPACE


class Registrations:
    """The registrations that core has checked and accepted."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        """Accept the current registrations; `plugins` are all plugins that may load."""
        self._plugins = plugins
        declared = [op for plugin in plugins for op in plugin.op_names]
        self._known = dispatcher.dump_registrations(declared)
        self._names = dispatcher.names()

    def expect_own(self, own: Iterable[str]) -> None:
        """Check that the plugin that loads has registered nothing but `own`, its ops.

        Raises:
            LoadError: it has another op, or changed one of another plugin.
        """
        for op in sorted(set(self._changed()).difference(own)):
            raise LoadError(
                f"it changes what is registered for {NAMESPACE}::{op}, which is an op of another"
                " plugin; uninstall one of the two"
            )
        for op in self._undeclared():
            raise LoadError(
                f"it registers the op {op!r}, which its manifest does not list: describe it in"
                " ops.toml, or do not register it, and build the plugin again"
            )

    def accept(self, ops: Iterable[str]) -> None:
        """Accept the current registrations of `ops`."""
        self._known.update(dispatcher.dump_registrations(ops))

    def refuse_leftovers(self, culprit: Plugin) -> None:
        """Make each op refuse calls for which `culprit`, a failed plugin, left a registration."""
        changed = set(self._changed())
        for plugin in self._plugins:
            own = sorted(changed.intersection(plugin.op_names))
            if not own:
                continue
            if plugin is not culprit:
                plugin.set_aside(
                    Status.FAILED,
                    f"{culprit.title} changed its op {own[0]!r}, and that cannot be undone;"
                    f" set {DISABLE}={culprit.name}",
                )
            plugin.refuse(plugin.op_names)
            self.accept(plugin.op_names)
        culprit.refuse(self._undeclared())
        self._names = dispatcher.names()

    def _changed(self) -> list[str]:
        """Return the declared ops whose registrations are not the accepted ones."""
        now = dispatcher.dump_registrations(self._known)
        return [op for op, text in self._known.items() if now[op] != text]

    def _undeclared(self) -> list[str]:
        """Return the new names in our namespace that no plugin declares, sorted."""
        start = f"{NAMESPACE}::"
        new = dispatcher.names() - self._names
        ours = {name.removeprefix(start) for name in new if name.startswith(start)}
        return sorted(ours - self._known.keys())
