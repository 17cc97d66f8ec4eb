"""Loads the plugins that the arbiter accepts, each isolated from the others."""

from __future__ import annotations

import difflib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from custom_pypto_discovery import arbiter, environment
from custom_pypto_discovery.arbiter import op_family
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.printable import printable_lines

from custom_pypto.core import hooks, namespace
from custom_pypto.core.after_import import when_imported
from custom_pypto.core.contributions import Reference, SampleInput
from custom_pypto.core.cpu_level import cpu_level
from custom_pypto.core.errors import PluginError, PluginQuarantinedWarning
from custom_pypto.core.graph import Graph
from custom_pypto.core.hooks import HookError, Hooks
from custom_pypto.core.log import logger
from custom_pypto.core.npu_kernel import NpuKernelRecord, npu_kernels
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.registry import NAMESPACE, OpRecord, PluginRecord, Status
from custom_pypto.core.version import __version__
from custom_pypto.core.warning import warn

# How long one thread waits for another that loads plugins. Two threads that import each other's
# modules meanwhile would wait for ever: Python breaks such circles only between its own locks.
_PATIENCE = 60.0


class Loader:
    """The plugins of this process.

    A plugin is pending while its module is in the middle of its import, as when the user imports it
    before core; it is loaded when that import ends, or else as soon as somebody asks.
    """

    def __init__(self, settings: Environment) -> None:
        """Find and judge the installed plugins; none is loaded yet."""
        self._settings = settings
        host = arbiter.this_host(__version__, torch.__version__)
        self._plugins = [Plugin(verdict) for verdict in arbiter.verdicts(settings, host)]
        self._providers = {
            op: plugin
            for plugin in self._plugins
            if plugin.status is Status.PENDING
            for op in plugin.families
        }
        self._hooks = Hooks()
        self._graph = Graph()
        self._lock = threading.RLock()
        # Not a flag: in a child that another thread forked meanwhile, nobody is loading.
        self._loading_thread: int | None = None
        self._wanted = False

    def load(self) -> None:
        """Load every accepted plugin, and warn of each that is quarantined.

        Raises:
            PluginError: a plugin is quarantined and CUSTOM_PYPTO_STRICT is set; none is loaded.
        """
        os.register_at_fork(after_in_child=self._renew_lock)
        namespace.install(self)
        try:
            for text in self._settings.warnings(plugin.name for plugin in self._plugins):
                warn(text)
            refused = [each for each in self._plugins if each.status is Status.QUARANTINED]
            self._tell([*self._advance(_PATIENCE), *refused])
        except BaseException:
            # The import of core fails, and may be tried again: leave nothing behind.
            self._unload()
            raise

    def complete(self) -> None:
        """Load the plugins that were pending and can be loaded by now.

        Raises:
            PluginError: one of them is quarantined and CUSTOM_PYPTO_STRICT is set.
        """
        self._graph.register()
        if self._pending():
            self._tell(self._advance(_PATIENCE))

    def plugins(self) -> tuple[PluginRecord, ...]:
        """Return a record of each installed plugin; see `custom_pypto.core.plugins`."""
        self.complete()
        records = [plugin.record() for plugin in self._plugins]
        others = (record for record in records if not _is_loaded(record))
        return (*filter(_is_loaded, records), *sorted(others, key=lambda record: record.name))

    def ops(self) -> tuple[OpRecord, ...]:
        """Return a record of each op of the loaded plugins, by name."""
        records = (op for plugin in self.plugins() for op in plugin.ops if _is_loaded(plugin))
        return tuple(sorted(records, key=lambda op: op.name))

    def op_names(self) -> list[str]:
        """Return the names of the ops of the loaded plugins, without overload."""
        return sorted(op for each in self._plugins if _is_loaded(each) for op in each.families)

    def samples(self, op: str, device: str) -> tuple[SampleInput, ...]:
        """Return the sample inputs of `op`; see `custom_pypto.core.samples`."""
        make = self._contribution(op, hooks.SAMPLES)
        if make is None:
            return ()
        made = tuple(make(device))
        for sample in made:
            if not isinstance(sample, SampleInput):
                raise PluginError(
                    f"{op}: its samples must be custom_pypto.core.SampleInput, got"
                    f" {type(sample).__name__}"
                )
        return made

    def reference(self, op: str) -> Reference | None:
        """Return the reference of `op`; see `custom_pypto.core.reference`."""
        found: Reference | None = self._contribution(op, hooks.REFERENCES)
        return found

    def npu_kernels(self, plugin: str) -> tuple[NpuKernelRecord, ...]:
        """Return the NPU kernels of `plugin`; see `custom_pypto.core.npu_kernels`."""
        return npu_kernels(self._library(plugin))

    def cpu_level(self, plugin: str) -> str | None:
        """Return the level of the CPU kernels of `plugin`; see `custom_pypto.core.cpu_level`."""
        return cpu_level(self._library(plugin))

    def _library(self, plugin: str) -> Path:
        for record in self.plugins():
            if record.name == plugin and _is_loaded(record):
                assert record.library is not None, "nothing is loaded without a library"
                return record.library
        raise LookupError(f"no plugin {plugin!r} is loaded; `custom-pypto list` shows which are")

    def describe(self, op: str) -> str:
        """Return the schemas of `op` and who provides it: what `help` shows of it."""
        plugin = self._providers.get(op)
        if plugin is None:
            return ""
        schemas = "\n".join(each.schema for each in plugin.ops if op_family(each.name) == op)
        return f"{schemas}\n\nAn op of {plugin.title}; `custom-pypto info {op}` shows more."

    def explain(self, op: str) -> str:
        """Return why `torch.ops.custom_pypto` has no `op`, and what to do."""
        absent = f"torch.ops.{NAMESPACE} has no op {op!r}"
        owners = [plugin for plugin in self._plugins if op in plugin.families]
        if owners:
            states = "; and to ".join(map(_state, owners))
            return f"{absent}: it belongs to {states}"
        provided = "no installed plugin provides it"
        unknown = [plugin for plugin in self._plugins if not plugin.ops]
        if unknown:
            # Without a valid manifest nothing says which ops are theirs.
            states = "; or to ".join(map(_state, unknown))
            provided = f"it may belong to {states}; no other installed plugin provides it"
        near = difflib.get_close_matches(op, self._known_ops(), n=3)
        similar = f"installed ops with a similar name: {', '.join(near)}; " if near else ""
        # "<name>" and not the name asked for: a slip of the pen must not become a wheel to install.
        return (
            f"{absent}: {provided}; {similar}every op is installed as a wheel:"
            " `pip install custom-pypto-<name>`; `custom-pypto list` shows what is installed"
        )

    def _known_ops(self) -> list[str]:
        return sorted({op for plugin in self._plugins for op in plugin.families})

    def _pending(self) -> list[Plugin]:
        return [plugin for plugin in self._plugins if plugin.status is Status.PENDING]

    def _advance(self, patience: float) -> list[Plugin]:
        """Load what is pending and can be; return what failed.

        When another thread is loading and does not end within `patience` seconds, nothing is done
        here: that thread goes round once more.
        """
        failed: list[Plugin] = []
        # Kept, because a process that is forked meanwhile gets another.
        lock = self._lock
        self._wanted = True
        while self._wanted and lock.acquire(timeout=patience):
            try:
                if self._loading_thread == threading.get_ident():
                    # This thread is loading already: a plugin that loads asked for an op.
                    break
                self._wanted = False
                failed += self._load_pending()
            finally:
                lock.release()
        return failed

    def _load_pending(self) -> list[Plugin]:
        self._loading_thread = threading.get_ident()
        try:
            tried = self._pending()
            for plugin in tried:
                self._load_one(plugin)
            return [plugin for plugin in tried if plugin.status is Status.QUARANTINED]
        finally:
            self._loading_thread = None

    def _load_one(self, plugin: Plugin) -> None:
        module = plugin.module_under_import()
        if module is not None:
            logger.debug("%s: waits for the import of %s", plugin.name, module.__name__)
            when_imported(module, self._import_ended)
            return
        for op in plugin.manifest.requires_ops if plugin.manifest else ():
            provider = self._providers[op_family(op)]
            if provider.status is Status.PENDING:
                logger.debug("%s: waits for %s", plugin.name, provider.name)
                return
            if provider.status is not Status.LOADED:
                plugin.quarantine(
                    arbiter.unmet(op, provider.name, str(provider.status), provider.reason)
                )
                return
        plugin.load(self._hooks, self._graph)

    def _import_ended(self) -> None:
        # Not waiting: this thread holds the import lock of a module that the other may want.
        self._tell(self._advance(patience=0.0))

    def _tell(self, failed: Iterable[Plugin]) -> None:
        texts = [f"{plugin.title} is quarantined: {plugin.reason}" for plugin in failed]
        if texts and self._settings.strict:
            raise PluginError(
                f"{environment.STRICT} is set, and {len(texts)} of the installed plugins cannot be"
                f" loaded:\n" + "\n".join(texts)
            )
        for text in texts:
            warn(text, PluginQuarantinedWarning)

    def _contribution(self, op: str, hook: str) -> Any:
        self.complete()
        for plugin in self._plugins:
            names = [each.name for each in plugin.ops]
            if op in names and _is_loaded(plugin):
                try:
                    return self._hooks.call(plugin.name, hook, names).get(op)
                except HookError as error:
                    raise PluginError(f"{plugin.title}: {error}") from error
        raise LookupError(self.explain(op))

    def _unload(self) -> None:
        for plugin in reversed(self._plugins):
            plugin.unload()
            if plugin.status is Status.PENDING:
                plugin.quarantine("the import of custom_pypto.core failed")

    def _renew_lock(self) -> None:
        # Another thread of the parent may have held it, and that thread is not in the child.
        self._lock = threading.RLock()


def _is_loaded(plugin: Plugin | PluginRecord) -> bool:
    return plugin.status is Status.LOADED


def _state(plugin: Plugin) -> str:
    if plugin.status is Status.PENDING:
        return f"{plugin.title}, which is being imported; its ops can be used when that has ended"
    return f"{plugin.title}, which is {plugin.status}: {printable_lines(plugin.reason)}"


_loader: Loader | None = None


def start() -> Loader:
    """Return the loader of this process; the first call makes it load the plugins."""
    global _loader
    if _loader is None:
        _loader = Loader(environment.read())
        try:
            _loader.load()
        except BaseException:
            _loader = None
            raise
    return _loader
