"""Calls back when a module has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AfterImport(MetaPathFinder):
    """Calls back when the code of any of some modules has run for the first time.

    It finds no module itself: the other finders do. It leaves `sys.meta_path` once one of the
    modules was imported. It misses a module whose import is already under way.
    """

    def __init__(self, names: Sequence[str], callback: Callable[[], None]) -> None:
        """`names` are names of modules; `callback` must not raise."""
        self._names = names
        self._callback = callback

    def watch(self) -> None:
        """Begin to wait; harmless when called twice."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the other finders' spec for one of the names, with a loader that is watched."""
        if fullname not in self._names:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None
            if finder is not self and find is not None:
                spec = find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Watched(spec.loader, self._imported)
                return spec
        return None

    def _imported(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._callback()


class _Watched(Loader):
    """A loader that calls back after another ran a module's code, and leaves no trace in it."""

    def __init__(self, loader: Loader, callback: Callable[[], None]) -> None:
        self._loader = loader
        self._callback = callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._callback()
