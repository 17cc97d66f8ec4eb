"""Reads the small files that describe a plugin, whoever wrote them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_SIZE = 4 << 20
"""The largest file that is read unless a caller says otherwise, in bytes."""


class UnsuitableFileError(OSError):
    """A file is no regular file, too large, or no text."""


def open_regular(path: str | Path) -> int:
    """Return a descriptor of the regular file `path`, for reading; links are followed.

    Never waits: a pipe has perhaps no writer, and a device perhaps no end.

    Raises:
        UnsuitableFileError: it is no regular file.
        OSError: it cannot be opened.
    """
    # A device may act on being opened, so look before; a swap after that meets the second look.
    _expect_regular(os.stat(path))  # noqa: PTH116  (many files are read, and Path is slow)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _expect_regular(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read(path: str | Path, most: int = MAX_SIZE) -> str:
    """Return the text, in UTF-8, of the regular file `path`.

    Raises:
        UnsuitableFileError: it is no regular file, has more than `most` bytes or is no text.
        OSError: it cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnsuitableFileError(f"has {size} bytes, at most {most} are read")
        # Read no more: the file may grow, or have no known size, as in /proc.
        contents = file.read(size + 1)
    if len(contents) > size:
        raise UnsuitableFileError(f"has more than the {size} bytes that it should have")
    try:
        return contents.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnsuitableFileError(f"is no text in UTF-8: {error}") from None


def _expect_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsuitableFileError("is not a regular file")
