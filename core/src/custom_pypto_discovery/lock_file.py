"""The lock file: which plugins may load, and what their files must be.

It is JSON, and for one platform, because libraries differ between platforms. `read` never raises: a
lock file that cannot be used has a `problem`, for which every plugin is rejected.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from custom_pypto_contract import manifest, small_file, tables
from custom_pypto_contract.tables import TableError
from custom_pypto_contract.variables import LOCKFILE

from custom_pypto_discovery import library_file, ownership
from custom_pypto_discovery.installed_plugin import (
    InstalledPlugin,
    install_again,
    normalize_name,
    uninstall,
)

VERSION = 1
"""The form of the file. A core reads its own version only."""

_CACHE = "__pycache__"

LockedPlugin = Mapping[str, Any]
"""What a lock file says of a plugin; docs/discovery.md explains each key."""


@dataclass(frozen=True)
class Lock:
    """The plugins that a lock file allows, by name, or the `problem` for which it allows none."""

    path: str
    plugins: Mapping[str, LockedPlugin]
    problem: str = ""

    @property
    def advice(self) -> str:
        """What to do about the problem."""
        return f"{self._rewrite}; or unset {LOCKFILE}"

    @property
    def _rewrite(self) -> str:
        return f"lock what is installed: custom-pypto lock {shlex.quote(self.path or 'FILE')}"

    def find_fault(self, plugin: InstalledPlugin) -> str:
        """Return why the lock does not allow `plugin`, which has no other fault; '' if it does."""
        need = self.plugins.get(plugin.name)
        if need is None:
            return (
                f"is not in the lock file {self.path}, which allows"
                f" {', '.join(self.plugins) or 'no plugin'};"
                f" {uninstall(plugin.distribution)}, or {self._rewrite}"
            )
        try:
            have = describe(plugin)
        except OSError as error:
            return f"its files cannot be compared with the lock file {self.path}: {error}"
        for key, label in _LABELS.items():
            if (given := have[key]) != (wanted := need[key]):
                wheel = f"{need['distribution']}=={need['version']}"
                return (
                    f"the lock file {self.path} allows {label} {_brief(wanted)},"
                    f" installed is {_brief(given)};"
                    f" install what it allows: {install_again(wheel)}; or {self._rewrite}"
                )
        return ""


def read(path: str, trusted: frozenset[int]) -> Lock:
    """Return the lock in the file `path`; one of `trusted` (user ids) must own it."""
    if not path:
        return _refuse(path, f"{LOCKFILE} is set and empty; it must name a lock file")
    try:
        unsafe = ownership.find_fault_of_file(Path(path), trusted)
        text = small_file.read(path)
    except (OSError, RuntimeError) as error:
        # Python before 3.13 raises RuntimeError for links in a circle.
        return _refuse(path, f"the lock file {path} cannot be read: {error}")
    if unsafe:
        return _refuse(path, f"the lock file {path} is not safe: {unsafe}")
    try:
        return Lock(path, _parse(text))
    except (ValueError, RecursionError) as error:
        return _refuse(path, f"{path} is no lock file of version {VERSION}: {error}")


def describe(plugin: InstalledPlugin) -> LockedPlugin:
    """Return what a lock file says of `plugin` as it is installed.

    Raises:
        OSError: a file cannot be read.
    """
    assert plugin.folder is not None
    assert plugin.manifest is not None
    library = plugin.manifest.library
    files = json.dumps(list(_list_files(plugin.folder)))
    return {
        "name": plugin.name,
        "distribution": normalize_name(plugin.distribution),
        "version": plugin.version,
        "module": plugin.module,
        "manifest": library_file.sha256_of(plugin.folder / manifest.FILE_NAME),
        # Inspection has compared the manifest with the file.
        "library": None if library is None else library.sha256,
        "files": hashlib.sha256(files.encode()).hexdigest(),
    }


def text_of(plugins: Iterable[LockedPlugin]) -> str:
    """Return the text of the lock file of some plugins; the same plugins always give the same."""
    ordered = sorted(plugins, key=lambda each: each["name"])
    document = {"custom_pypto_lock": VERSION, "plugins": ordered}
    return json.dumps(document, indent=1) + "\n"


def _list_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the path in `folder`, and the SHA-256, of every file in it, in order.

    Without bytecode caches. Of a link to a folder, which is in `folder` too, its target is yielded.
    """
    for place, folders, names in os.walk(folder, onerror=_raise):
        here = Path(place)
        inner = here.relative_to(folder)
        for name in sorted(names):
            yield (inner / name).as_posix(), library_file.sha256_of(here / name)
        for name in filter(lambda each: (here / each).is_symlink(), sorted(folders)):
            yield (inner / name).as_posix(), f"-> {(here / name).readlink()}"
        folders[:] = sorted(name for name in folders if name != _CACHE)


def _raise(error: OSError) -> None:
    raise error


_LABELS = {
    **{key: f"the {key}" for key in ("name", "distribution", "version", "module")},
    "manifest": "a manifest with sha256",
    "library": "a library with sha256",
    "files": "a package whose files have the sha256",
}
_SHA256 = tables.text_matching("[0-9a-f]{64}", "64 lower case hexadecimal digits")
_VALUES = {
    **dict.fromkeys(_LABELS, tables.filled_text),
    "manifest": _SHA256,
    "library": tables.optional(_SHA256),
    "files": _SHA256,
}
_check_plugins = tables.list_of(tables.record(_VALUES, _VALUES))


def _parse(text: str) -> dict[str, LockedPlugin]:
    document = json.loads(text)
    tables.table("the file", document)
    version = document.get("custom_pypto_lock")
    if type(version) is not int or version != VERSION:
        raise TableError("custom_pypto_lock", f"must be {VERSION}", version)
    plugins = document.get("plugins")
    _check_plugins("plugins", plugins)
    found: dict[str, LockedPlugin] = {
        each["name"]: {**each, "distribution": normalize_name(each["distribution"])}
        for each in plugins
    }
    if len(found) < len(plugins):
        raise TableError("plugins", "names one plugin more than once")
    return found


def _refuse(path: str, why: str) -> Lock:
    return Lock(path, {}, f"no plugin may load: {why}")


def _brief(value: str | None) -> str:
    if value is None:
        return "(none)"
    return f"{value[:16]}..." if len(value) == 64 else value
