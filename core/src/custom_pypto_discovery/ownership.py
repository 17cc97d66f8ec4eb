"""Whether somebody else could change what a plugin runs, by owner and permissions of its files."""

# With many plugins, Path would take half of the time.
# ruff: noqa: PTH100, PTH112, PTH116, PTH120

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from custom_pypto_discovery.installed_plugin import InstalledPlugin, reinstall


class _LinkError(Exception):
    """A folder of a package is a link out of it; the text is the reason to show."""


def find_fault(plugin: InstalledPlugin, trusted: frozenset[int]) -> str:
    """Return which file or folder of `plugin` is not safe, and what to do; empty if all are.

    Checks the metadata and the package, with everything in them, and the folders that hold them. A
    file is safe if one of `trusted` (user ids) owns it and not everybody may write it.
    """
    remedy = reinstall(plugin.distribution)
    try:
        for path, status in _relied_on(plugin):
            if fault := _find_unsafe(path, status, trusted, remedy):
                return fault
    except OSError as error:
        return f"its files cannot be looked at: {error}"
    except _LinkError as error:
        return str(error)
    return ""


def find_fault_of_file(path: str | os.PathLike[str], trusted: frozenset[int]) -> str:
    """Return what is not safe about the file `path` and the folders that hold it; '' if nothing is.

    Raises:
        OSError: it cannot be looked at.
    """
    remedy = "put a copy of your own in its place"
    faults = (_find_unsafe(*each, trusted, remedy) for each in _with_holders(path))
    return next(filter(None, faults), "")


def _find_unsafe(path: str, status: os.stat_result, trusted: frozenset[int], remedy: str) -> str:
    if _is_writable(status):
        return (
            f"{path} can be changed by every user of this machine, who could so run code as you;"
            f" make it safe: chmod o-w {path}"
        )
    if status.st_uid not in trusted:
        allowed = ", ".join(map(str, sorted(trusted)))
        return (
            f"{path} belongs to the user id {status.st_uid}; allowed are {allowed} (root, you, and"
            f" the owner of core's files); {remedy}"
        )
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        return f"{path} is neither a file nor a folder; delete it"
    return ""


def _relied_on(plugin: InstalledPlugin) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what decides which code runs, and its status."""
    for place in (plugin.metadata, plugin.folder):
        if place is not None:
            yield from _with_holders(place)
            root = os.path.realpath(place)
            if os.path.isdir(root):
                yield from _inside(root)


def _with_holders(place: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield `place` and the folders that hold it: who may write these can replace it."""
    real = os.path.realpath(place)
    for path in (os.path.dirname(os.path.abspath(place)), os.path.dirname(real), real):
        yield path, os.stat(path)


def _inside(root: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError as error:
                    # A link to nothing in the package itself, such as an editor's lock.
                    if _is_inside(target := os.path.realpath(entry.path), root):
                        continue
                    raise _LinkError(
                        f"the link {entry.path} leads out of its package, to {target}, where"
                        " somebody may put a file; delete the link"
                    ) from error
                yield entry.path, status
                if entry.is_symlink():
                    yield _holder_of_target(entry.path, root)
                elif stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)


def _holder_of_target(link: str, root: str) -> tuple[str, os.stat_result]:
    """Return the folder that holds what `link` leads to; a folder must be inside `root`."""
    target = os.path.realpath(link)
    if os.path.isdir(target) and not _is_inside(target, root):
        raise _LinkError(
            f"the folder {link} leads out of its package, to {target}; a folder must be in its own"
            " package: put a copy in place of the link"
        )
    folder = os.path.dirname(target)
    return folder, os.stat(folder)


def _is_inside(path: str, root: str) -> bool:
    return f"{path}/".startswith(f"{root}/")


def _is_writable(status: os.stat_result) -> bool:
    # In a sticky folder nobody replaces the files of others.
    sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    return bool(status.st_mode & stat.S_IWOTH) and not sticky
