"""The folder of built objects and libraries, shared by all environments of a user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_build.errors import BuildError


def cache_folder() -> Path:
    """``$CUSTOM_PYPTO_SIM_CACHE``, else a folder in the user's cache; links are resolved.

    It is made if it is missing, for this user alone. Raises BuildError when somebody else could
    have put code into it: when it, or a file or folder in it, belongs to a user that is neither
    this one nor root, or everybody may write it, or it is a link.
    """
    chosen = os.environ.get("CUSTOM_PYPTO_SIM_CACHE")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = str(Path(base) / "custom_pypto_simulator")
    folder = Path(chosen).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check(str(folder), folder.stat())
    return folder


def check(path: str, status: os.stat_result) -> None:
    """Check a file, or a folder and what others can reach in it."""
    fault = _find_fault(status)
    if fault:
        raise BuildError(
            f"somebody else may have written code into the simulator's cache: {path} {fault};"
            " delete the cache, or set CUSTOM_PYPTO_SIM_CACHE to a folder of your own"
        )
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IXOTH:
        with os.scandir(path) as entries:
            for entry in entries:
                # Another process may be building: its temporary files go.
                with contextlib.suppress(FileNotFoundError):
                    check(entry.path, entry.stat(follow_symlinks=False))


def _find_fault(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    if status.st_mode & stat.S_IWOTH:
        return "can be changed by everybody"
    return "" if status.st_uid in (0, os.geteuid()) else f"belongs to the user id {status.st_uid}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates ``folder`` when it is missing, and locks it against other builds."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
