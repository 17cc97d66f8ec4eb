"""Acts when the import of a module has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ACTS = "_custom_pypto_acts"


def is_being_imported(module: ModuleType) -> bool:
    """Return whether `module` is in the middle of its import, in this thread or another."""
    spec = getattr(module, "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def when_imported(module: ModuleType, act: Callable[[], None]) -> None:
    """Call `act` as soon as the import of `module`, which is under way, has ended.

    `act` runs in the thread that imports, whether the import succeeded or failed. It does not run
    for a module whose spec is of a class of its own; nothing but tools that trace imports has such.
    """
    if module.__spec__ is not None:
        _mark(module.__spec__, act)


def _mark(spec: ModuleSpec, act: Callable[[], None]) -> None:
    if type(spec) is ModuleSpec:
        spec.__class__ = _WatchedSpec
    if isinstance(spec, _WatchedSpec):
        vars(spec).setdefault(_ACTS, []).append(act)


class _WatchedSpec(ModuleSpec):
    """A spec that notices when the import machinery marks the import as ended.

    Python offers no event for it. The mark, which keeps other threads from using half a module, is
    set back as the last act of every import; a hook in the loader would come too late here, because
    the loader is running already.
    """

    __slots__ = ()

    @property
    def _initializing(self) -> bool:
        return bool(self.__dict__.get("_initializing", False))

    @_initializing.setter
    def _initializing(self, value: bool) -> None:
        self.__dict__["_initializing"] = value
        if not value:
            for act in self.__dict__.pop(_ACTS, ()):
                act()


class AfterImport(MetaPathFinder):
    """Calls `act` after the first import of any of some modules, which then is complete.

    It finds no module itself. It lets the other finders find, marks the spec and is gone from
    `sys.meta_path` after the import.
    """

    def __init__(self, names: Sequence[str], act: Callable[[], None]) -> None:
        """Take the names of the modules and what to do, which must not raise."""
        self._names = names
        self._act = act

    def watch(self) -> None:
        """Begin to wait; harmless when that is so already."""
        for name in self._names:
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and is_being_imported(module):
                when_imported(module, self._done)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give for one of the names, with a mark on it."""
        if fullname not in self._names:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                _mark(spec, self._done)
                return spec
        return None

    def _done(self) -> None:
        self._act()
        # A failed import leaves the act without its module; the next attempt calls it again.
        if any(_is_complete(name) for name in self._names) and self in sys.meta_path:
            sys.meta_path.remove(self)


def _is_complete(name: str) -> bool:
    module = sys.modules.get(name)
    return isinstance(module, ModuleType) and not is_being_imported(module)
