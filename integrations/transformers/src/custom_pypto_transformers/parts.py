"""Compares what this package uses of transformers, most of it private, with the installed release.

No release is listed: a later one is used as long as it has what is called, read and replaced here.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import pkgutil
from typing import Any

from .requirements import INSTALL, TESTED


class Parts:
    """The functions of a module of transformers, and how the installed ones differ."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._differences: list[str] = []

    def check(self, path: str, count: int = 0, names: str = "", like: Any = None) -> None:
        """Check a function, such as ``DynamicCache.update``.

        It must take ``count`` positional arguments, self too, and these names. If we replace it by
        the function ``like``, it must begin with the same parameters, and have no unknown one.
        """
        if (function := self._found(path)) is None:
            return
        signature = inspect.signature(function)
        try:
            if like is None:
                signature.bind(*range(count), **dict.fromkeys(names.split()))
            else:
                needed, theirs = _named(like, required=True), _named(function)
                if theirs[: len(needed)] != needed or not {*theirs} <= {*_named(like)}:
                    raise TypeError
        except TypeError:
            self._differences.append(f"another {path}{signature}")

    def reads(self, path: str, names: str) -> None:
        """Check that a function assigns, calls or passes what has these names."""
        if (function := self._found(path)) is not None:
            code = inspect.unwrap(function).__code__
            # Names of keyword arguments are constants: a string each, or a tuple of them.
            used = {*code.co_names, *code.co_consts}.union(
                *(each for each in code.co_consts if isinstance(each, tuple))
            )
            missing = [name for name in names.split() if name not in used]
            self._differences += [f"no {name} in {path}" for name in missing]

    def difference(self) -> str | None:
        """Say in one sentence what is unknown in the installed release; None if nothing is."""
        if not self._differences:
            return None
        return (
            f"transformers {importlib.metadata.version('transformers')} has"
            f" {', '.join(self._differences)}; {TESTED} is the newest that was tested: {INSTALL}"
        )

    def find(self, path: str) -> Any:
        """Return what has this name, or raise AttributeError or ImportError."""
        return pkgutil.resolve_name(self.whole_name(path))

    def whole_name(self, path: str) -> str:
        """Put the module before a path that names none."""
        return path if path.startswith("transformers.") else f"{self._module}.{path}"

    def _found(self, path: str) -> Any:
        try:
            return self.find(path)
        except (AttributeError, ImportError):
            self._differences.append(f"no {self.whole_name(path)}")
            return None


def _named(function: Any, required: bool = False) -> list[str]:
    found = inspect.signature(function).parameters.values()
    named = [each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return [each.name for each in named if not required or each.default is each.empty]
