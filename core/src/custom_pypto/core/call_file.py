"""The files to which lines of calls are added."""

from __future__ import annotations

import os


def open_to_add(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of the file `path`, to which others may add at the same time.

    Does not wait for a reader if it is a pipe.

    Raises:
        OSError: it cannot be opened, or is a pipe without a reader.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor
