"""One installed plugin, and the steps by which it is loaded and taken back."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import ModuleType

from custom_pypto_contract.manifest import Manifest, Op
from custom_pypto_discovery.arbiter import Decision, Verdict, op_family
from custom_pypto_discovery.printable import printable

from custom_pypto.core import dispatcher, hooks, namespace, opp
from custom_pypto.core.after_import import is_being_imported
from custom_pypto.core.errors import LoadError, described, reason
from custom_pypto.core.graph import Graph
from custom_pypto.core.hooks import Hooks
from custom_pypto.core.library import Library
from custom_pypto.core.log import logger
from custom_pypto.core.python_kernels import PythonKernels
from custom_pypto.core.registry import PluginRecord, Status, op_record

_STATUS = {
    Decision.ACCEPTED: Status.PENDING,
    Decision.BLOCKED: Status.BLOCKED,
    Decision.QUARANTINED: Status.QUARANTINED,
}


class Plugin:
    """A plugin in one of the states of `Status`; it begins in the one that the verdict says."""

    def __init__(self, verdict: Verdict) -> None:
        """Take the arbiter's verdict; nothing is loaded yet."""
        self.name = verdict.name
        self.status = _STATUS[verdict.decision]
        self.reason = verdict.reason
        self._claim = verdict.claim
        self._load_time = 0.0
        self._undo = ExitStack()

    @property
    def manifest(self) -> Manifest | None:
        """Its manifest; None when it has no valid one."""
        return self._claim.manifest

    @property
    def ops(self) -> tuple[Op, ...]:
        """Its ops by its manifest."""
        return () if self.manifest is None else self.manifest.ops

    @property
    def families(self) -> tuple[str, ...]:
        """The names of its ops without overload, each once."""
        return tuple(dict.fromkeys(op_family(op.name) for op in self.ops))

    @property
    def title(self) -> str:
        """How messages call it, on one line."""
        candidate = self._claim.candidate
        distribution = f"{candidate.distribution} {candidate.version}".strip()
        return printable(f"the plugin {self.name!r} ({distribution})")

    def module_under_import(self) -> ModuleType | None:
        """Return its module, or a package around it, that is in the middle of its import."""
        module = self._claim.candidate.module
        while module:
            found = sys.modules.get(module)
            if found is not None and is_being_imported(found):
                return found
            module = module.rpartition(".")[0]
        return None

    def load(self, plugin_hooks: Hooks, graph: Graph) -> None:
        """Load it, or quarantine it with everything taken back. Only KeyboardInterrupt passes."""
        start = time.perf_counter()
        try:
            with ExitStack() as undo:
                self._steps(plugin_hooks, graph, undo)
                self._undo = undo.pop_all()
            self.status, self.reason = Status.LOADED, ""
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A plugin that calls sys.exit() must not end the user's program.
            logger.debug("%s: failed", self.name, exc_info=error)
            self.quarantine(reason(error))
        self._load_time = time.perf_counter() - start
        logger.debug("%s: %s in %.1f ms", self.name, self.status, self._load_time * 1e3)

    def quarantine(self, reason: str) -> None:
        """Mark it as not usable for `reason`."""
        self.status, self.reason = Status.QUARANTINED, reason

    def unload(self) -> None:
        """Take back all that `load` did; harmless when there is nothing."""
        self._undo.close()
        if self.status is Status.LOADED:
            self.status = Status.PENDING

    def record(self) -> PluginRecord:
        """Return what is known of it now."""
        candidate, manifest = self._claim.candidate, self.manifest
        loaded = self.status is Status.LOADED
        return PluginRecord(
            name=self.name,
            version=candidate.version,
            distribution=candidate.distribution,
            status=self.status,
            reason=self.reason,
            ops=tuple(op_record(op, self.name, loaded=loaded) for op in self.ops),
            library=_inside(candidate.folder, manifest.library.path) if manifest else None,
            opp=_inside(candidate.folder, manifest.opp) if manifest else None,
            load_time=self._load_time,
        )

    def _steps(self, plugin_hooks: Hooks, graph: Graph, undo: ExitStack) -> None:
        dispatcher.expect_free(self.ops)
        self._open_library(undo)
        self._announce_opp(undo)
        plugin_hooks.add(self.name, self._import())
        undo.callback(_safely, plugin_hooks.remove, self.name)
        self._add_python_kernels(plugin_hooks, undo)
        self._add_converters(plugin_hooks, graph, undo)

    def _open_library(self, undo: ExitStack) -> None:
        found = self._claim.library
        assert found is not None, "the arbiter accepts no plugin without a library"
        logger.debug("%s: opening %s", self.name, found.path)
        library = Library(found.path)
        library.register()
        undo.callback(_safely, namespace.forget, self.families)
        undo.callback(_safely, library.unregister)
        # Overloads of an op may have been asked for, and not found, before.
        namespace.forget(self.families)
        dispatcher.expect_registered(self.ops)

    def _import(self) -> ModuleType:
        candidate = self._claim.candidate
        logger.debug("%s: importing %s", self.name, candidate.module)
        try:
            module = importlib.import_module(candidate.module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise LoadError(
                f"importing its module {candidate.module!r} failed: {described(error)}"
            ) from error
        package = sys.modules[candidate.package]
        if candidate.folder is None or not _is_in(package, candidate.folder):
            raise LoadError(
                f"another module called {candidate.package!r}, {package!r}, was imported before the"
                f" plugin's, which is in {candidate.folder}; rename or remove that module"
            )
        return module

    def _add_python_kernels(self, plugin_hooks: Hooks, undo: ExitStack) -> None:
        names = [op.name for op in self.ops]
        fakes = plugin_hooks.call(self.name, hooks.FAKES, names)
        autograd = plugin_hooks.call(self.name, hooks.AUTOGRAD, names)
        if not fakes and not autograd:
            return
        kernels = PythonKernels()
        undo.callback(_safely, kernels.remove)
        kernels.add_fakes(fakes)
        kernels.add_autograd(autograd)
        logger.debug("%s: %d fakes, %d derivatives", self.name, len(fakes), len(autograd))

    def _add_converters(self, plugin_hooks: Hooks, graph: Graph, undo: ExitStack) -> None:
        if not plugin_hooks.implements(self.name, hooks.CONVERTERS):
            return
        names = [op.name for op in self.ops]
        graph.add(self.name, partial(plugin_hooks.call, self.name, hooks.CONVERTERS, names))
        undo.callback(_safely, graph.remove, self.name)

    def _announce_opp(self, undo: ExitStack) -> None:
        folder = self.manifest and _inside(self._claim.candidate.folder, self.manifest.opp)
        new = opp.announce(opp.packages(folder)) if folder else ()
        if new:
            logger.debug("%s: %s names %s", self.name, opp.VARIABLE, ", ".join(map(str, new)))
            undo.callback(_safely, opp.withdraw, new)


def _safely(undo: Callable[..., None], *arguments: object) -> None:
    """Undo one step; a failure must neither hide the reason for undoing nor stop the others."""
    try:
        undo(*arguments)
    except Exception:
        logger.exception("a step of a plugin that is taken back could not be undone")


def _inside(folder: Path | None, relative: str | None) -> Path | None:
    return None if folder is None or not relative else folder / relative


def _is_in(package: ModuleType, folder: Path) -> bool:
    try:
        return any(folder.samefile(place) for place in getattr(package, "__path__", ()))
    except OSError:
        return False
