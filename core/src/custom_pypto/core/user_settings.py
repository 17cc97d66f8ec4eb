"""Keeps a plugin that loads from changing what the user and all other plugins depend on."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from custom_pypto.core.errors import LoadError, describe_error

_PREFIX = "CUSTOM_PYPTO_"
_PACKAGES = "custom_pypto"
_ABSENT = "custom_pypto_absent_module"
_seen: set[str] = set()
_ours: set[str] = set()
"""Those of the seen names of modules that begin with `_PACKAGES`."""


@contextmanager
def keep_settings() -> Iterator[None]:
    """Restore the filters of warnings, our variables and the import system when this ends.

    Additions to `sys.path` and `sys.meta_path` stay.

    Raises:
        LoadError: the plugin changed a variable, or Python could import nothing any more.
    """
    objects = [(os, "environ", os.environ), (sys, "modules", sys.modules)]
    variables = _variables()
    modules = _modules()
    path, finders = list(sys.path), list(sys.meta_path)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        changes = [
            *_restore_objects(objects),
            *_restore_variables(variables),
            *_restore_entries("path", path),
            *_restore_entries("meta_path", finders),
            *_remove_raising(finders),
            *_restore_modules(modules),
        ]
    if changes:
        raise LoadError(f"it {changes[0]}, on which all others depend; tell its author")


def _restore_objects(before: Sequence[tuple[ModuleType, str, object]]) -> Iterator[str]:
    for module, name, value in before:
        if getattr(module, name, None) is not value:
            setattr(module, name, value)
            yield f"replaces {module.__name__}.{name}"


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if name.startswith(_PREFIX)}


def _restore_variables(before: dict[str, str]) -> Iterator[str]:
    now = _variables()
    for name in sorted(before.keys() | now.keys()):
        if now.get(name) != before.get(name):
            os.environ.pop(name, None)
            yield f"changes the variable {name}"
    os.environ.update(before)


def _restore_entries(name: str, before: list[Any]) -> Iterator[str]:
    now = getattr(sys, name, None)
    if not isinstance(now, list) or not _identities(before) <= _identities(now):
        setattr(sys, name, before)
        yield f"removes entries of sys.{name}"


def _identities(entries: Sequence[Any]) -> set[Any]:
    """Return what tells entries apart; a plugin's own may compare in any way, or raise."""
    return {each if type(each) is str else id(each) for each in entries}


def _modules() -> dict[str, ModuleType]:
    """Return the modules of core, of its packages and of official plugins."""
    # With many plugins there are thousands of names, so each is looked at once.
    for name in sys.modules.keys() - _seen:
        _seen.add(name)
        if name.startswith(_PACKAGES):
            _ours.add(name)
    return {name: sys.modules[name] for name in _ours & sys.modules.keys()}


def _restore_modules(before: dict[str, ModuleType]) -> Iterator[str]:
    if any(sys.modules.get(name) is not module for name, module in before.items()):
        sys.modules.update(before)
        yield "removes modules of core or plugins from sys.modules"


def _remove_raising(before: list[Any]) -> Iterator[str]:
    known = _identities(before)
    for finder in [each for each in sys.meta_path if id(each) not in known]:
        try:
            finder.find_spec(_ABSENT, None, None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Not remove(): it would ask the finder whether it is equal.
            sys.meta_path[:] = [each for each in sys.meta_path if each is not finder]
            yield f"puts a finder on sys.meta_path that raises {describe_error(error)}"
