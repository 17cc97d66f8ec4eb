"""Loads the accepted plugins, each isolated from the others."""

from __future__ import annotations

import gc
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from custom_pypto_contract.errors import ContractError, find_similar
from custom_pypto_contract.fork_locks import LOADING
from custom_pypto_contract.variables import STRICT
from custom_pypto_discovery import discovery, environment, resolution
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family
from custom_pypto_discovery.printable import escape_lines, shorten

from custom_pypto.core import namespace
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.errors import PluginError, PluginFailedWarning, PluginRejectedWarning, warn
from custom_pypto.core.flop_formulas import FlopFormulas
from custom_pypto.core.graph import Graph
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.records import NAMESPACE
from custom_pypto.core.registrations import Registrations
from custom_pypto.core.version import __version__

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract

    from custom_pypto.core.watched_kernels import WatchedKernels

_WARNINGS = {Status.FAILED: PluginFailedWarning, Status.REJECTED: PluginRejectedWarning}


class Loader:
    """The plugins of this process; `namespace` holds it."""

    def __init__(self, settings: Environment) -> None:
        self._settings = settings
        self.plugins = [Plugin(each) for each in self._discover()]
        self._graph = Graph()
        self._flop_formulas = FlopFormulas(self._contracts)
        self._watched: WatchedKernels | None = None
        self._loading_thread: int | None = None

    def load(self) -> None:
        """Load every accepted plugin, and warn of each that is rejected or fails.

        Raises:
            PluginError: there is one, and CUSTOM_PYPTO_STRICT is set; none is loaded.
        """
        namespace.install(self)
        try:
            with self._alone():
                for text in self._settings.warnings(plugin.name for plugin in self.plugins):
                    warn(shorten(text))
                self._load_accepted()
                self._report(self.plugins)
        except BaseException:
            # The import of core fails, and may be tried again: leave nothing behind.
            for plugin in reversed(self.loaded()):
                plugin.set_aside(Status.FAILED, "the import of custom_pypto.core failed")
            namespace.uninstall()
            raise

    def load_new(self) -> None:
        """Load what was installed since; see `custom_pypto.core.load_new`."""
        with self._alone():
            importlib.invalidate_caches()
            # The code of these has run. Others may be accepted now: the ops they need may be there.
            settled = self._with_status(Status.LOADED, Status.FAILED)
            known = {plugin.installed.order for plugin in settled}
            seen = {(plugin.name, plugin.reason) for plugin in self.plugins}
            found = [Plugin(each) for each in self._discover() if each.order not in known]
            self.plugins = [*settled, *found]
            self._load_accepted()
            self._report([each for each in found if (each.name, each.reason) not in seen])

    def loaded(self) -> list[Plugin]:
        """Return the loaded plugins, in loading order."""
        return self._with_status(Status.LOADED)

    def find_owner(self, op: str) -> Plugin:
        """Return the loaded plugin that provides `op`.

        Raises:
            LookupError: there is none; the text says why.
        """
        for plugin in self.loaded():
            if op in plugin.op_names:
                return plugin
        raise LookupError(self.explain(op))

    def complete(self) -> None:
        """Do what could not be done while plugins loaded: see `graph`."""
        self._graph.register()

    def op_names(self) -> list[str]:
        """Return the names of the ops of the loaded plugins, without overload."""
        return sorted(op for each in self.loaded() for op in each.installed.families)

    def contract(self, op: str) -> OpContract:
        """Return the contract of a loaded op."""
        return self.find_owner(op).contracts[op].op

    def describe(self, op: str) -> str | None:
        """Return what `help` shows for `op`; None while its plugin loads."""
        for plugin in self.plugins:
            if op not in plugin.installed.families:
                continue
            if plugin.status is Status.ACCEPTED:
                return None
            if plugin.status is Status.LOADED:
                contracts = plugin.contracts.items()
                texts = [_describe(each) for name, each in contracts if op_family(name) == op]
                source = f"An op of {plugin.title}; `custom-pypto info {op}` shows more."
                return escape_lines("\n\n".join([*texts, source]))
        return ""

    def explain(self, op: str) -> str:
        """Return why `torch.ops.custom_pypto` has no `op`, and what to do."""
        op = shorten(op)
        absent = f"torch.ops.{NAMESPACE} has no op {op!r}"
        owners = [
            each for each in self.plugins if op in {*each.installed.families, *each.refused_ops}
        ]
        if owners:
            states = "; and to ".join(map(_describe_state, owners))
            return f"{absent}: it belongs to {states}"
        provided = "no installed plugin provides it"
        unknown = [plugin for plugin in self.plugins if not plugin.installed.ops]
        if unknown:
            # Without a valid manifest nothing says which ops are theirs.
            states = "; or to ".join(map(_describe_state, unknown))
            provided = f"it may belong to {states}; no other installed plugin provides it"
        known = sorted({name for plugin in self.plugins for name in plugin.installed.families})
        near = find_similar(op, known, most=3)
        similar = f"installed ops with a similar name: {', '.join(near)}; " if near else ""
        # "<name>", not the op's: a misspelt name must not become a wheel to install.
        return (
            f"{absent}: {provided}; {similar}{HOW_TO_INSTALL_OPS}; `custom-pypto list` shows what"
            " is installed"
        )

    def refuses(self, op: str) -> bool:
        """Return whether what is registered for `op` must not be called."""
        return any(op in plugin.refused_ops for plugin in self.plugins)

    def _discover(self) -> tuple[InstalledPlugin, ...]:
        return discovery.discover(self._settings, this_host(__version__, torch.__version__))

    def _with_status(self, *statuses: Status) -> list[Plugin]:
        return [plugin for plugin in self.plugins if plugin.status in statuses]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out; PluginError in a plugin that this thread is loading."""
        with LOADING.lock:
            if self._loading_thread == threading.get_ident():
                raise PluginError(
                    "a plugin called load_new() while it was loaded; call it after the import of"
                    " custom_pypto.core, or install the other plugin as one of its own"
                )
            self._loading_thread = threading.get_ident()
            try:
                yield
            finally:
                self._loading_thread = None

    def _load_accepted(self) -> None:
        accepted = self._with_status(Status.ACCEPTED)
        if not accepted:
            return
        if self._watched is None and (self._settings.log or self._settings.record):
            # Few users watch calls: others do not pay for the import.
            from custom_pypto.core.watched_kernels import WatchedKernels

            self._watched = WatchedKernels(self._settings)
        registrations = Registrations([*self.loaded(), *accepted])
        for plugin in accepted:
            # Another plugin may have changed its ops.
            if plugin.status is not Status.ACCEPTED or not self._has_requirements(plugin):
                continue
            if plugin.load(self._graph, registrations.expect_own, self._watched):
                registrations.accept(plugin.op_names)
            else:
                registrations.refuse_leftovers(plugin)
        for plugin in self.loaded():
            self._has_requirements(plugin)
        self._flop_formulas.update()

    def _contracts(self) -> Iterator[LazyContract]:
        return (each for plugin in self.loaded() for each in plugin.contracts.values())

    def _has_requirements(self, plugin: Plugin) -> bool:
        """Return whether the ops that `plugin` requires are loaded; set it aside if not."""
        if not plugin.installed.requires_ops:
            return True
        tried = self._with_status(Status.LOADED, Status.FAILED, Status.ACCEPTED)
        for op in plugin.installed.requires_ops:
            # One that was replaced since, and failed, comes before the one that replaced it.
            provider = [each for each in tried if op_family(op) in each.installed.families][-1]
            if provider.status is not Status.LOADED:
                reason = resolution.explain_requirement(
                    op, provider.name, provider.status, provider.reason
                )
                plugin.set_aside(provider.status, reason)
                return False
        return True

    def _report(self, plugins: list[Plugin]) -> None:
        bad = [each for status in _WARNINGS for each in plugins if each.status is status]
        texts = [f"{plugin.title} {plugin.status.verb}: {plugin.reason}" for plugin in bad]
        if texts and self._settings.strict:
            heading = f"{STRICT} is set, and {len(bad)} of the installed plugins cannot be"
            raise PluginError(shorten("\n".join([f"{heading} loaded:", *texts])))
        for plugin, text in zip(bad, texts, strict=True):
            warn(text, _WARNINGS[plugin.status])


def _describe(contract: LazyContract) -> str:
    from custom_pypto_contract.description import describe

    try:
        return describe(contract.op)
    except ContractError as error:
        return str(error)


def _describe_state(plugin: Plugin) -> str:
    if plugin.status is Status.ACCEPTED:
        return f"{plugin.title}, which is not loaded yet: the import of custom_pypto.core goes on"
    return f"{plugin.title}, which {plugin.status.verb}: {escape_lines(plugin.reason)}"


_loader: Loader | None = None


def start() -> Loader:
    """Return the loader of this process; the first call makes it load the plugins.

    That call is in `custom_pypto.core`. Python's lock of its import keeps other threads out
    meanwhile.
    """
    global _loader
    if _loader is None:
        # Somebody may have deleted core from sys.modules, but not its ops from the dispatcher.
        _loader = namespace.installed()
    if _loader is None:
        # The collector would scan the many lasting objects repeatedly.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            _loader = Loader(environment.read())
            _loader.load()
        except BaseException:
            _loader = None
            raise
        finally:
            if was_enabled:
                gc.enable()
    return _loader
