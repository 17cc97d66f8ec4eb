"""One installed plugin, and the steps by which it is loaded and taken back."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from custom_pypto_contract.dispatch_keys import COMPOSED, DEVICE_KEYS, EVERY_DEVICE
from custom_pypto_contract.manifest import Library as LibraryEntry
from custom_pypto_discovery import library_file
from custom_pypto_discovery.installed_plugin import (
    LOADING_ATTRIBUTE,
    InstalledPlugin,
    Status,
    describe_missing_kernel,
    op_family,
)
from custom_pypto_discovery.printable import escape_lines, printable

from custom_pypto.core import dispatcher, hooks, namespace, opp
from custom_pypto.core.contracts.kernels import checked_fake, fake_kernel, graph_converter
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.errors import LoadError, describe_error, describe_failure, logger
from custom_pypto.core.graph import Graph
from custom_pypto.core.hooks import Hooks
from custom_pypto.core.library import Library
from custom_pypto.core.python_kernels import PythonKernels, is_random
from custom_pypto.core.records import OpRecord, PluginRecord

if TYPE_CHECKING:
    from custom_pypto.core.watched_kernels import WatchedKernels


class Plugin:
    """A plugin, which starts in the state that discovery gave it."""

    def __init__(self, installed: InstalledPlugin) -> None:
        self.installed = installed
        self.name = installed.name
        self.status = installed.status
        self.reason = installed.reason
        title = self.title
        self.contracts = {op.name: LazyContract(op, title) for op in installed.ops}
        self._hooks: Hooks | None = None
        self._refusing: list[str] = []
        self._without_fake: list[str] = []
        self._load_time = 0.0
        self._undo = ExitStack()
        self.refused_ops: set[str] = set()
        """Names in `torch.ops` that refuse though something may be registered for them."""

    @property
    def op_names(self) -> list[str]:
        """The names of its ops."""
        return list(self.contracts)

    @property
    def library(self) -> Path | None:
        """Its library by its manifest; None when it has none."""
        described = self._described_library
        return self._inside(described.path if described else None)

    @property
    def title(self) -> str:
        """The plugin's name in messages, on one line."""
        distribution = f"{self.installed.distribution} {self.installed.version}".strip()
        return printable(f"the plugin {self.name!r} ({distribution})")

    def load(
        self,
        graph: Graph,
        expect_own: Callable[[Iterable[str]], None],
        watched: WatchedKernels | None,
    ) -> bool:
        """Load it, or mark it failed and undo everything; return whether it is loaded.

        Only KeyboardInterrupt passes. `expect_own` raises LoadError if anything but the ops that it
        gets was registered.
        """
        logger.debug("%s: loading", self.name, extra={LOADING_ATTRIBUTE: self.name})
        start = time.perf_counter()
        try:
            # Filters that the plugin leaves behind must not make the import of core fail.
            with ExitStack() as undo, warnings.catch_warnings():
                self._steps(graph, expect_own, undo)
                if watched is not None:
                    undo.callback(_safely, watched.cover(self._op_records(is_registered=True)))
                self._undo = undo.pop_all()
            self.status, self.reason = Status.LOADED, ""
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A plugin that calls sys.exit() must not end the user's program.
            logger.debug("%s: failed", self.name, exc_info=error)
            self.set_aside(Status.FAILED, describe_failure(error))
        self._load_time = time.perf_counter() - start
        milliseconds = 1e3 * self._load_time
        text = "%s: %s in %.1f ms"
        logger.debug(text, self.name, self.status, milliseconds, extra={LOADING_ATTRIBUTE: ""})
        return self.status is Status.LOADED

    def set_aside(self, status: Status, reason: str) -> None:
        """Take back what `load` did, and mark it as not usable for `reason`."""
        self._undo.close()
        self.status, self.reason = status, reason

    def refuse(self, ops: Iterable[str]) -> None:
        """Make `torch.ops` raise its failure for `ops`, even if a kernel is still registered."""
        families = {op_family(op) for op in ops}
        namespace.forget(families)
        self.refused_ops |= families

    def contribution(self, hook: str) -> Mapping[str, Any]:
        """Return what it contributes by `hook`, by op. Raises HookError; see `Hooks.call`."""
        assert self._hooks is not None, "only a loaded plugin has hooks"
        return self._hooks.call(hook)

    def record(self) -> PluginRecord:
        """Return what is known of it now."""
        installed, described = self.installed, self._described_library
        return PluginRecord(
            name=self.name,
            version=installed.version,
            distribution=installed.distribution,
            status=self.status,
            reason=escape_lines(self.reason),
            ops=self._op_records(self.status is Status.LOADED),
            folder=installed.folder,
            library=self.library,
            library_sha256=described.sha256 if described else "",
            opp=self._inside(installed.manifest.opp if installed.manifest else None),
            load_time=self._load_time,
        )

    @property
    def _described_library(self) -> LibraryEntry | None:
        manifest = self.installed.manifest
        return None if manifest is None else manifest.library

    def _op_records(self, is_registered: bool) -> tuple[OpRecord, ...]:
        return tuple(
            OpRecord(op.name, op.schema, self.name, self._keys(op.name) if is_registered else ())
            for op in self.installed.ops
        )

    def _keys(self, op: str) -> tuple[str, ...]:
        # Kernels that only raise an error are core's.
        hidden = {EVERY_DEVICE} if op in self._refusing else set()
        if op in self._without_fake:
            hidden.add("Meta")
        return tuple(key for key in dispatcher.keys_with_kernels(op) if key not in hidden)

    def _steps(
        self, graph: Graph, expect_own: Callable[[Iterable[str]], None], undo: ExitStack
    ) -> None:
        dispatcher.expect_free(self.installed.ops)
        kernels = PythonKernels()
        undo.callback(_safely, kernels.remove)
        undo.callback(_safely, namespace.forget, self.installed.families)
        if self.library is None:
            kernels.define(self.installed.ops)
        else:
            # torch's stable ABI registers no tags before 2.12.
            kernels.define(filter(is_random, self.installed.ops))
            self._open_library(self.library, undo)
        # Somebody may have looked up overloads of an op before they were there.
        namespace.forget(self.installed.families)
        self._announce_opp(undo)
        self._hooks = Hooks(self.name, self._import(), self.op_names)
        undo.callback(_safely, self._hooks.unregister)
        self._add_python_kernels(self._hooks, kernels)
        expect_own(self.op_names)
        has_graph_line = any(each.has_graph_line for each in self.contracts.values())
        if has_graph_line or self._hooks.implements(hooks.CONVERTERS):
            graph.add(self.name, self._converters)
            undo.callback(_safely, graph.remove, self.name)

    def _open_library(self, path: Path, undo: ExitStack) -> None:
        # A link inside the package is followed, as discovery did.
        path = path.resolve()
        logger.debug("%s: opening %s", self.name, path)
        if library_file.state(path) != self.installed.library_state:
            raise LoadError(f"its library {path} changed after core had checked it; start again")
        library = Library(path)
        library.register()
        undo.callback(_safely, library.unregister)
        dispatcher.expect_registered(self.installed.ops)

    def _import(self) -> ModuleType:
        name = self.installed.module
        logger.debug("%s: importing %s", self.name, name)
        try:
            # Where two threads wait for each other's imports, importlib.import_module raises an
            # error; this returns the incomplete module.
            __import__(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise LoadError(
                f"importing its module {name!r} failed: {describe_error(error)}"
            ) from error
        package = sys.modules[self.installed.package]
        folder = self.installed.folder
        places = map(os.path.realpath, getattr(package, "__path__", ()))
        if folder is None or os.path.realpath(folder) not in places:
            raise LoadError(
                f"another module called {self.installed.package!r}, {package!r}, was imported"
                f" before the plugin's, which is in {folder}; rename or remove that module"
            )
        self._expect_complete(name)
        return sys.modules[name]

    def _expect_complete(self, module: str) -> None:
        """Check that the import of its module, and of the packages around it, is complete."""
        name = module
        while name:
            if getattr(getattr(sys.modules[name], "__spec__", None), "_initializing", False):
                raise LoadError(
                    f"its module {name!r} imports custom_pypto.core, and was imported before it, so"
                    " that its hooks are not there yet; import custom_pypto.core first, or let the"
                    " module import from custom_pypto_plugin, which loads nothing, instead"
                )
            name = name.rpartition(".")[0]

    def _add_python_kernels(self, plugin_hooks: Hooks, kernels: PythonKernels) -> None:
        kernels.add_kernels(plugin_hooks.call(hooks.KERNELS), self.contracts)
        generated = {
            op: fake_kernel(contract)
            for op, contract in self.contracts.items()
            if not dispatcher.keys_with_kernels(op, ("Meta", COMPOSED))
        }
        given = plugin_hooks.call(hooks.FAKES, generated=generated)
        without = {op for op in self.contracts if not self.contracts[op].says_outputs}
        checked = {op: checked_fake(self.contracts[op], given[op]) for op in without & given.keys()}
        kernels.add_fakes({**generated, **given, **checked})
        self._without_fake = [op for op in generated if op in without and op not in given]
        kernels.add_autograd(plugin_hooks.call(hooks.AUTOGRAD))
        for op in self.op_names:
            keys = dispatcher.keys_with_kernels(op, DEVICE_KEYS)
            if not keys:
                problem, advice = describe_missing_kernel(op, self.installed.distribution)
                kernels.add_failing_kernel(op, f"{problem}, {self.title}; {advice}")
            elif not any(key.startswith("Composite") for key in keys):
                kernels.add_refusal(op, keys, self.contracts[op])
            else:
                continue
            self._refusing.append(op)
        kernels.add_for_writes(self.op_names)

    def _converters(self) -> Mapping[str, Any]:
        generated = {
            name: graph_converter(contract)
            for name, contract in self.contracts.items()
            if contract.has_graph_line
        }
        return {**generated, **self.contribution(hooks.CONVERTERS)}

    def _announce_opp(self, undo: ExitStack) -> None:
        manifest = self.installed.manifest
        folder = self._inside(manifest.opp if manifest else None)
        new = opp.announce(opp.find_packages(folder)) if folder else ()
        if new:
            logger.debug("%s: %s names %s", self.name, opp.VARIABLE, ", ".join(map(str, new)))
            undo.callback(_safely, opp.withdraw, new)

    def _inside(self, relative: str | None) -> Path | None:
        folder = self.installed.folder
        return None if folder is None or not relative else folder / relative


def _safely(undo: Callable[..., None], *arguments: object) -> None:
    """Undo one step; a failure must not hide the reason for undoing, nor stop the other steps."""
    try:
        undo(*arguments)
    except Exception:
        logger.exception("a step of a plugin that is taken back could not be undone")
