"""Loads the accepted plugins, each isolated from the others."""

from __future__ import annotations

import difflib
import importlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from custom_pypto_contract.errors import ContractError
from custom_pypto_discovery import discovery, environment, resolution
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, op_family
from custom_pypto_discovery.printable import printable_lines
from custom_pypto_plugin import Reference, SampleInput

from custom_pypto.core import dispatcher, hooks, namespace
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.cpu_isa import cpu_isa
from custom_pypto.core.errors import PluginError, PluginFailedWarning, PluginRejectedWarning
from custom_pypto.core.graph import Graph
from custom_pypto.core.hooks import HookError
from custom_pypto.core.npu_kernel import NpuKernelRecord, npu_kernels
from custom_pypto.core.plugin import Plugin
from custom_pypto.core.registry import NAMESPACE, OpRecord, PluginRecord
from custom_pypto.core.version import __version__
from custom_pypto.core.warning import warn

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract

_WARNINGS = {Status.FAILED: PluginFailedWarning, Status.REJECTED: PluginRejectedWarning}


class Loader:
    """The plugins of this process."""

    def __init__(self, settings: Environment) -> None:
        """Find the installed plugins; none is loaded yet."""
        self._settings = settings
        self._plugins = [Plugin(each) for each in self._discover()]
        self._graph = Graph()
        self._loading = threading.Lock()

    def load(self) -> None:
        """Load every accepted plugin, and warn of each that is rejected or fails.

        Raises:
            PluginError: there is one, and CUSTOM_PYPTO_STRICT is set; none is loaded.
        """
        namespace.install(self)
        try:
            for text in self._settings.warnings(plugin.name for plugin in self._plugins):
                warn(text)
            self._load_accepted()
            self._report(self._plugins)
        except BaseException:
            # The import of core fails, and may be tried again: leave nothing behind.
            for plugin in reversed(self._with_status(Status.LOADED)):
                plugin.set_aside(Status.FAILED, "the import of custom_pypto.core failed")
            namespace.uninstall()
            raise

    def load_new(self) -> None:
        """Load what was installed since; see `custom_pypto.core.load_new`."""
        with self._loading:
            importlib.invalidate_caches()
            # Code of these has run. The others may be accepted by now, as when what they need came.
            settled = self._with_status(Status.LOADED, Status.FAILED)
            known = {plugin.installed.order for plugin in settled}
            seen = {(plugin.name, plugin.reason) for plugin in self._plugins}
            found = [Plugin(each) for each in self._discover() if each.order not in known]
            self._plugins = [*settled, *found]
            self._load_accepted()
            self._report([each for each in found if (each.name, each.reason) not in seen])

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
        loaded = self._with_status(Status.LOADED)
        return sorted(op for each in loaded for op in each.installed.families)

    def samples(self, op: str, device: str) -> tuple[SampleInput, ...]:
        """Return the sample inputs of `op`; see `custom_pypto.core.samples`."""
        make = self._contribution(op, hooks.SAMPLES)
        if make is None:
            return ()
        made = tuple(make(device))
        for sample in made:
            if not isinstance(sample, SampleInput):
                raise PluginError(
                    f"{op}: its samples must be custom_pypto_plugin.SampleInput, got"
                    f" {type(sample).__name__}"
                )
        return made

    def reference(self, op: str) -> Reference | None:
        """Return the reference of `op`; see `custom_pypto.core.reference`."""
        from custom_pypto.core.contracts.definition import defined

        found: Reference | None = self._contribution(op, hooks.REFERENCES)
        definition = defined(self.contract(op)) if found is None else None
        return found if definition is None else Reference(definition)

    def contract(self, op: str) -> OpContract:
        """Return the contract of `op`; see `custom_pypto.core.contract`."""
        return self._owner(op).contracts[op].op

    def npu_kernels(self, plugin: str) -> tuple[NpuKernelRecord, ...]:
        """Return the NPU kernels of `plugin`; see `custom_pypto.core.npu_kernels`."""
        library = self._library(plugin)
        return () if library is None else npu_kernels(library)

    def cpu_isa(self, plugin: str) -> str | None:
        """Return the instruction set of `plugin`; see `custom_pypto.core.cpu_isa`."""
        library = self._library(plugin)
        return None if library is None else cpu_isa(library)

    def undeclared(self) -> dict[str, list[str]]:
        """Return the ops that no manifest lists, each with the plugins that declare it.

        Slow: it reads their files. Not done at import, therefore, but in a build and by doctor.
        """
        loaded = self._with_status(Status.LOADED)
        declared = [op for plugin in loaded for op in plugin.op_names]
        return {
            op: [plugin.name for plugin in loaded if plugin.declares(op)]
            for op in dispatcher.undeclared(declared)
        }

    def complete(self) -> None:
        """Do what could not be done while plugins loaded: see `graph`."""
        self._graph.register()

    def describe(self, op: str) -> str | None:
        """Return the contracts of `op` and who provides it; None while its plugin loads."""
        for plugin in self._with_status(Status.LOADED, Status.ACCEPTED):
            if op in plugin.installed.families:
                if plugin.status is Status.ACCEPTED:
                    return None
                texts = "\n\n".join(
                    _described(contract)
                    for name, contract in plugin.contracts.items()
                    if op_family(name) == op
                )
                return f"{texts}\n\nAn op of {plugin.title}; `custom-pypto info {op}` shows more."
        return ""

    def explain(self, op: str) -> str:
        """Return why `torch.ops.custom_pypto` has no `op`, and what to do."""
        absent = f"torch.ops.{NAMESPACE} has no op {op!r}"
        owners = [plugin for plugin in self._plugins if op in plugin.installed.families]
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

    def _discover(self) -> tuple[InstalledPlugin, ...]:
        return discovery.discover(self._settings, this_host(__version__, torch.__version__))

    def _known_ops(self) -> list[str]:
        return sorted({op for plugin in self._plugins for op in plugin.installed.families})

    def _with_status(self, *statuses: Status) -> list[Plugin]:
        return [plugin for plugin in self._plugins if plugin.status in statuses]

    def _load_accepted(self) -> None:
        """Load the plugins that are accepted, in their order."""
        tried = self._with_status(Status.LOADED, Status.FAILED)
        providers = {op: plugin for plugin in tried for op in plugin.installed.families}
        for plugin in self._with_status(Status.ACCEPTED):
            self._load_one(plugin, providers)
            providers.update(dict.fromkeys(plugin.installed.families, plugin))

    def _load_one(self, plugin: Plugin, providers: dict[str, Plugin]) -> None:
        for op in plugin.installed.requires_ops:
            provider = providers[op_family(op)]
            if provider.status is not Status.LOADED:
                reason = resolution.needs(op, provider.name, provider.status, provider.reason)
                plugin.set_aside(provider.status, reason)
                return
        loaded = self._with_status(Status.LOADED)
        plugin.load([op for each in loaded for op in each.op_names], self._graph)

    def _report(self, plugins: list[Plugin]) -> None:
        bad = [each for status in _WARNINGS for each in plugins if each.status is status]
        texts = [f"{plugin.title} {plugin.status.verb}: {plugin.reason}" for plugin in bad]
        if texts and self._settings.strict:
            raise PluginError(
                f"{environment.STRICT} is set, and {len(texts)} of the installed plugins cannot be"
                f" loaded:\n" + "\n".join(texts)
            )
        for plugin, text in zip(bad, texts, strict=True):
            warn(text, _WARNINGS[plugin.status])

    def _library(self, plugin: str) -> Path | None:
        for each in self._with_status(Status.LOADED):
            if each.name == plugin:
                return each.library
        raise LookupError(f"no plugin {plugin!r} is loaded; `custom-pypto list` shows which are")

    def _contribution(self, op: str, hook: str) -> Any:
        plugin = self._owner(op)
        try:
            return plugin.contribution(hook).get(op)
        except HookError as error:
            raise PluginError(f"{plugin.title}: {error}") from error

    def _owner(self, op: str) -> Plugin:
        for plugin in self._with_status(Status.LOADED):
            if op in plugin.op_names:
                return plugin
        raise LookupError(self.explain(op))


def _described(contract: LazyContract) -> str:
    from custom_pypto_contract.description import describe

    try:
        return describe(contract.op)
    except ContractError as error:
        return str(error)


def _is_loaded(plugin: PluginRecord) -> bool:
    return plugin.status is Status.LOADED


def _state(plugin: Plugin) -> str:
    if plugin.status is Status.ACCEPTED:
        return f"{plugin.title}, which is not loaded yet: the import of custom_pypto.core goes on"
    return f"{plugin.title}, which {plugin.status.verb}: {printable_lines(plugin.reason)}"


_loader: Loader | None = None


def start() -> Loader:
    """Return the loader of this process; the first call makes it load the plugins.

    Python's lock of the import of `custom_pypto.core`, which is where that call is, keeps other
    threads out meanwhile.
    """
    global _loader
    if _loader is None:
        # Somebody may have deleted core from sys.modules, but not its ops from the dispatcher.
        _loader = cast("Loader | None", namespace.installed())
    if _loader is None:
        _loader = Loader(environment.read())
        try:
            _loader.load()
        except BaseException:
            _loader = None
            raise
    return _loader
