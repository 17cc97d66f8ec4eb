"""The folder of built objects and libraries, shared by all environments of a user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "CUSTOM_PYPTO_SIM_CACHE"


def cache_folder() -> Path:
    """``$CUSTOM_PYPTO_SIM_CACHE``, else a folder in the user's cache; created when missing."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        folder = Path(chosen)
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "custom_pypto_simulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks ``folder`` against other builds."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, renamed to ``path`` if the block succeeds, else removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=path.parent))
    try:
        target = scratch / path.name
        yield target
        target.replace(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
