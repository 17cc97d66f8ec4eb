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
    have put code into it: when it, or the folder that holds it, belongs to a user that is neither
    this one nor root, or everybody may write it.
    """
    chosen = os.environ.get("CUSTOM_PYPTO_SIM_CACHE")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = str(Path(base) / "custom_pypto_simulator")
    folder = Path(chosen).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    holder = folder.parent.stat()
    # In a sticky folder, such as /tmp, nobody replaces the folders of others.
    if not holder.st_mode & stat.S_ISVTX:
        expect_own(str(folder.parent), holder)
    expect_own(str(folder), folder.stat())
    return folder


def expect_own(path: str, status: os.stat_result) -> None:
    """Raise BuildError when somebody else may write a folder of this state."""
    if status.st_mode & stat.S_IWOTH:
        fault = "can be changed by everybody"
    elif status.st_uid not in (0, os.geteuid()):
        fault = f"belongs to the user id {status.st_uid}"
    else:
        return
    raise BuildError(
        f"somebody else may have written code into the simulator's cache: {path} {fault};"
        " delete the cache, or set CUSTOM_PYPTO_SIM_CACHE to a folder of your own"
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates ``folder`` when it is missing, and locks it against other builds."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
