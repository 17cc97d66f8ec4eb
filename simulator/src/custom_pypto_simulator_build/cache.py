"""The folder of built objects and libraries, shared by all environments of a user."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_folder() -> Path:
    """``$CUSTOM_PYPTO_SIM_CACHE``, else a folder in the user's cache."""
    chosen = os.environ.get("CUSTOM_PYPTO_SIM_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "custom_pypto_simulator"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates ``folder`` when it is missing, and locks it against other builds."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
