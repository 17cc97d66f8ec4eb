"""A wheel that anybody may have made, read without unpacking it into a folder.

Reading takes bounded time and memory, and nothing of the wheel runs. A wheel is a zip archive; the
directory of its files is at its end.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from custom_pypto_contract import small_file

MOST_FILES = 20_000
MOST_BYTES = 4 << 30
"""All files together, unpacked."""
_MOST_DIRECTORY = 16 << 20
_CHUNK = 1 << 20
_NAME = re.compile(
    r"(?P<distribution>[^-]+)-(?P<version>[^-]+)(-(?P<build>\d[^-]*))?"
    r"-(?P<pythons>[^-]+)-(?P<abis>[^-]+)-(?P<platforms>[^-]+)\.whl"
)
# The end of the directory, as a zip archive without a comment has it, and the mark of the longer
# one for large archives.
_END, _END_SIZE, _LONG_END, _LONG_END_SIZE = b"PK\5\6", 22, b"PK\6\7", 20

# Marks a field of an entry that holds another name, which Python reads from 3.12 on.
_UNICODE_NAME = 0x7075

# What zipfile raises where an archive is damaged, or made to look so.
_DAMAGES = (
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class WheelError(Exception):
    """A file is no wheel that can be read; the text is a predicate: "is no zip archive"."""


@dataclass(frozen=True)
class Tags:
    """The tags in a wheel's file name; each is one or several."""

    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    def expand(self) -> frozenset[str]:
        """Return every combination, as the file WHEEL lists them."""
        return frozenset(
            f"{python}-{abi}-{platform}"
            for python in self.pythons
            for abi in self.abis
            for platform in self.platforms
        )


class WheelFile:
    """An open wheel. `files` maps the path of each file in it to the SHA-256 of its contents.

    `unsafe` says what is wrong with entries that a careless program would write to a wrong place;
    they are not among `files`.
    """

    def __init__(self, path: Path) -> None:
        """Read the directory, and every file once.

        Raises:
            WheelError: the file is no wheel, damaged, or too large.
        """
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise WheelError(
                "is not named as a wheel: <distribution>-<version>-<python>-<abi>-<platform>.whl"
            )
        self.path = path
        self.distribution, self.version = name["distribution"], name["version"]
        self.tags = Tags(
            *(tuple(name[part].split(".")) for part in ("pythons", "abis", "platforms"))
        )
        self.unsafe: list[str] = []
        self.files: dict[str, str] = {}
        try:
            self.size = _check_directory(path)
            self._archive = zipfile.ZipFile(path)
            self._entries = self._read_directory()
            for entry_name, entry in self._entries.items():
                self.files[entry_name] = self._sha256(entry)
        except _DAMAGES as error:
            raise WheelError(f"cannot be read: {error}") from None

    def read(self, name: str, most: int = small_file.MAX_SIZE) -> bytes:
        """Return the contents of the file `name`, which is in `files`.

        Raises:
            WheelError: it has more than `most` bytes.
        """
        size = self._entries[name].file_size
        if size > most:
            raise WheelError(f"has {name} with {size} bytes; at most {most} are read")
        with self._open(self._entries[name]) as file:
            return file.read(size + 1)

    def read_text(self, name: str) -> str:
        """Return the text of the file `name`, or '' if there is none.

        Raises:
            WheelError: it is too large, or no text in UTF-8.
        """
        if name not in self.files:
            return ""
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise WheelError(f"has {name}, which is no text in UTF-8: {error}") from None

    def _read_directory(self) -> dict[str, zipfile.ZipInfo]:
        entries = self._archive.infolist()
        if len(entries) > MOST_FILES:
            raise WheelError(f"holds {len(entries)} files; at most {MOST_FILES} are read")
        size = sum(entry.file_size for entry in entries)
        if size > MOST_BYTES:
            raise WheelError(f"holds {size} bytes when unpacked; at most {MOST_BYTES} are read")
        found: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            name = entry.orig_filename
            if fault := _fault(entry):
                self.unsafe.append(f"{name!r} {fault}")
            elif name in found:
                self.unsafe.append(f"{name!r} is there twice")
            elif not entry.is_dir():
                found[name] = entry
        folders = {str(parent) for name in found for parent in PurePosixPath(name).parents}
        self.unsafe += [f"{name!r} is a file and a folder" for name in found if name in folders]
        return found

    def _open(self, entry: zipfile.ZipInfo) -> IO[bytes]:
        # zipfile stops at the size that the directory claims: with one byte more, the checksum of
        # an entry that is longer is wrong.
        longer = copy(entry)
        longer.file_size += 1
        return self._archive.open(longer)

    def _sha256(self, entry: zipfile.ZipInfo) -> str:
        found = hashlib.sha256()
        with self._open(entry) as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
        return found.hexdigest()


def _check_directory(path: Path) -> int:
    """Check that the directory of an archive can be held in memory; return the archive's size."""
    with os.fdopen(small_file.open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _LONG_END_SIZE - _END_SIZE))
        end = file.read()
    record = end[-_END_SIZE:]
    if record[:4] != _END or record[-2:] != b"\0\0":
        raise WheelError("is no zip archive, or has something after its end")
    if end[:4] == _LONG_END:
        raise WheelError("is a zip archive for more than 4 GiB")
    directory = int.from_bytes(record[12:16], "little")
    if directory > _MOST_DIRECTORY:
        raise WheelError(
            f"has a directory of {directory} bytes; at most {_MOST_DIRECTORY} are read"
        )
    return size


def _fault(entry: zipfile.ZipInfo) -> str:
    name = entry.orig_filename
    if name.startswith("/") or "\\" in name or not name.isprintable():
        return "is no path inside the wheel"
    if {"", ".", ".."}.intersection(name.removesuffix("/").split("/")):
        return "leads out of its folder"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if _UNICODE_NAME in _extra_fields(entry.extra):
        # Newer installers take that one.
        return "has a second name"
    if entry.flag_bits & 1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that wheels are not"
    return ""


def _extra_fields(extra: bytes) -> Iterator[int]:
    """Yield the marks of the fields that an entry has besides those of every entry."""
    while len(extra) >= 4:
        mark, size = struct.unpack_from("<HH", extra)
        yield mark
        extra = extra[4 + size :]
