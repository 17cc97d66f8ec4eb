"""Puts a folder in the place of another one."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_folder(new: Path, place: Path) -> None:
    """Put `new` at `place`, and what was there, if anything, where `new` was.

    Both must be on one file system. No moment is without a folder at `place`, except on file
    systems that cannot exchange two names (NFS is one), where two renames do it. A link at `place`
    is moved, and not followed.

    Raises:
        OSError: it cannot be done; what was at `place` still is.
    """
    if not os.path.lexists(place):
        new.rename(place)
    elif not _exchange(new, place):
        old = new.with_name(f"{new.name}.old")
        place.rename(old)
        try:
            new.rename(place)
        except BaseException:
            old.rename(place)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names at once; return False where the system cannot."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except AttributeError:
        # A libc other than glibc.
        return False
    paths = os.fsencode(one), os.fsencode(other)
    done: int = renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    return done == 0
