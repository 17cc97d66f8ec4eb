"""Whether somebody else could change what a plugin runs, by owner and permissions of its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_discovery.installed_plugin import InstalledPlugin


def find_fault(plugin: InstalledPlugin, trusted: frozenset[int]) -> str:
    """Return which file or folder of `plugin` is not safe, and what to do; empty if all are.

    Checks the package with everything in it, the metadata folder and its list of entry points. A
    file is safe if one of `trusted` (user ids) owns it and not everybody may write it.
    """
    try:
        for path, status in _executed(plugin):
            if _is_writable(status):
                return (
                    f"{path} can be changed by every user of this machine, who could so run code"
                    f" as you; make it safe: chmod o-w {path}"
                )
            if status.st_uid not in trusted:
                allowed = ", ".join(map(str, sorted(trusted)))
                return (
                    f"{path} belongs to the user id {status.st_uid}; allowed are {allowed} (root,"
                    f" you, and the owner of core's files); reinstall it: pip install"
                    f" --force-reinstall --no-deps {plugin.distribution}"
                )
    except OSError as error:
        return f"its files cannot be looked at: {error}"
    return ""


def _executed(plugin: InstalledPlugin) -> Iterator[tuple[str, os.stat_result]]:
    if plugin.metadata is not None:
        for path in (plugin.metadata, plugin.metadata / "entry_points.txt"):
            if path.exists():
                yield str(path), path.stat()
    if plugin.folder is not None:
        folder = str(plugin.folder.resolve())
        yield folder, Path(folder).stat()
        yield from _inside(folder)


def _inside(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:
                # Nobody can run a link to nothing.
                continue
            yield entry.path, status
            if entry.is_dir(follow_symlinks=False):
                yield from _inside(entry.path)


def _is_writable(status: os.stat_result) -> bool:
    # In a sticky folder nobody replaces the files of others.
    sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    return bool(status.st_mode & stat.S_IWOTH) and not sticky
