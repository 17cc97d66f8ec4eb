"""Compares what this package uses of transformers, most of it private, with the installed release.

No release is listed: a later one is used as long as it has what is called, read and replaced here.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import operator
from collections.abc import Iterator
from typing import Any

from .requirements import TESTED


class Parts:
    """The functions of a module of transformers, and how the installed ones differ.

    A path is the name of a function or class in the module, such as ``DynamicCache.update``.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._differences: list[str] = []

    def calls(self, path: str, positional: int, *keywords: str) -> None:
        """Check that a function takes so many positional arguments, self too, and these names."""
        for function in self._find(path):
            try:
                inspect.signature(function).bind(*range(positional), **dict.fromkeys(keywords))
            except TypeError:
                self._differences.append(f"another {path}{inspect.signature(function)}")

    def replaces(self, path: str, ours: Any) -> None:
        """Check that our function takes what one of transformers takes, by the same names."""
        needed, taken = _named(ours, required=True), _named(ours)
        for function in self._find(path):
            if not needed <= _named(function) <= taken:
                self._differences.append(f"another {path}{inspect.signature(function)}")

    def reads(self, path: str, *names: str) -> None:
        """Check that a function assigns, calls or passes what has these names."""
        for function in self._find(path):
            for name in names:
                if name not in _used(function):
                    self._differences.append(f"no {name} in {path}")

    def difference(self) -> str | None:
        """Say in one sentence what is unknown in the installed release; None if nothing is."""
        if not self._differences:
            return None
        return (
            f"transformers {importlib.metadata.version('transformers')} has"
            f" {', '.join(self._differences)}; {TESTED} is the newest that was tested:"
            f" pip install 'transformers<={TESTED}'"
        )

    def _find(self, path: str) -> Iterator[Any]:
        try:
            yield operator.attrgetter(path)(importlib.import_module(self._module))
        except (AttributeError, ImportError):
            self._differences.append(f"no {self._module}.{path}")


def parameters(function: Any) -> frozenset[str]:
    """The names of a function's parameters."""
    return frozenset(inspect.signature(function).parameters)


def _named(function: Any, required: bool = False) -> set[str]:
    found = inspect.signature(function).parameters.values()
    return {
        each.name
        for each in found
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and not (required and each.default is not each.empty)
    }


def _used(function: Any) -> set[str]:
    code = inspect.unwrap(function).__code__
    # Names of keyword arguments are constants: a string each, or a tuple of them.
    constants = [each if isinstance(each, tuple) else (each,) for each in code.co_consts]
    return {*code.co_names, *(each for one in constants for each in one if isinstance(each, str))}
