"""Unpacks a wheel, which anybody may have made, into a folder. Nothing of the wheel runs."""

from __future__ import annotations

import base64
import csv
import os
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from custom_pypto_contract import small_file
from custom_pypto_discovery import library_file

MOST_FILES = 20_000
MOST_BYTES = 4 << 30
"""The most bytes that all files have together, unpacked."""
MOST_RATIO = 200
"""The most bytes of unpacked files for each byte of the wheel."""
_MOST_SHOWN = 3
_NAME = re.compile(r"[^-]+-[^-]+(-\d[^-]*)?(-[^-]+){3}\.whl")
# zipfile raises these where an archive is damaged, or made to look so.
_DAMAGES = (
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class WheelError(Exception):
    """A file is no wheel that can be unpacked; the text is a predicate: "cannot be unpacked"."""


@dataclass(frozen=True)
class UnpackedWheel:
    """The wheel `path` in the folder `site`; `info` is its folder ``.dist-info``."""

    path: Path
    site: Path
    info: Path

    @property
    def platforms(self) -> list[str]:
        """The platform tags in the file name."""
        return self.path.stem.rpartition("-")[2].split(".")

    @property
    def packages(self) -> list[str]:
        """The names that it has in site-packages besides its metadata."""
        return sorted(each.name for each in self.site.iterdir() if each != self.info)

    @cached_property
    def files(self) -> frozenset[Path]:
        """The paths of all files."""
        return frozenset(each for each in self.site.rglob("*") if each.is_file())

    def has_module(self, name: str) -> bool:
        """Return whether the wheel has a module for any Python, or files in its folder."""
        path = self.site.joinpath(*name.split("."))
        return any(path in each.parents for each in self.files) or any(
            each.suffix in (".py", ".so") and each.name.partition(".")[0] == path.name
            for each in self.files
            if each.parent == path.parent
        )

    def read(self, name: str) -> str:
        """Return the text of the file `name` of its metadata, '' if there is none.

        Raises:
            WheelError: it is too large, or no text.
        """
        try:
            return small_file.read(self.info / name)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise WheelError(f"has a file {name} in its metadata that {error}") from None

    def find_unrecorded(self) -> list[str]:
        """Return the files that are not as RECORD says, and those that only one of the two has.

        Raises:
            WheelError: RECORD cannot be read.
        """
        try:
            rows = [*csv.reader(self.read("RECORD").splitlines())]
        except csv.Error as error:
            raise WheelError(f"has a file RECORD that cannot be read: {error}") from None
        listed = {row[0]: row[1] for row in rows if len(row) == 3}
        found = {each.relative_to(self.site).as_posix(): _digest(each) for each in self.files}
        differing = {name for name, _ in listed.items() ^ found.items()}
        return sorted(differing - {f"{self.info.name}/RECORD"})


def unpack(path: Path, site: Path) -> UnpackedWheel:
    """Unpack the wheel `path` into the empty folder `site`, in bounded time and space.

    Raises:
        WheelError: it is no wheel, is too large, or has a path that leads out of it.
    """
    if _NAME.fullmatch(path.name) is None:
        raise WheelError(
            "is not named as a wheel: <distribution>-<version>-<python>-<abi>-<platform>.whl"
        )
    try:
        # A pipe is not waited for.
        with os.fdopen(small_file.open_regular(path), "rb") as file:
            archive = zipfile.ZipFile(file)
            _check(archive.infolist(), os.fstat(file.fileno()).st_size)
            archive.extractall(site)
    except _DAMAGES as error:
        raise WheelError(f"cannot be unpacked: {error}") from None
    infos = [*site.glob("*.dist-info/")]
    if len(infos) != 1:
        raise WheelError(f"must have one folder of metadata (.dist-info), and has {len(infos)}")
    return UnpackedWheel(path, site, infos[0])


def shorten_list(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - _MOST_SHOWN
    return ", ".join(texts[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _check(entries: Sequence[zipfile.ZipInfo], packed: int) -> None:
    # zipfile unpacks no more of an entry than the size that the directory claims.
    unpacked = sum(entry.file_size for entry in entries)
    most = min(MOST_BYTES, MOST_RATIO * packed)
    if len(entries) > MOST_FILES:
        raise WheelError(f"holds {len(entries)} files; at most {MOST_FILES} are unpacked")
    if unpacked > most:
        raise WheelError(f"holds {unpacked} bytes when unpacked; at most {most} are unpacked")
    if unsafe := [repr(each.orig_filename) for each in entries if _is_unsafe(each.orig_filename)]:
        raise WheelError(f"holds paths that lead out of it: {shorten_list(unsafe)}")


def _is_unsafe(name: str) -> bool:
    is_outside = name.startswith("/") or ".." in name.split("/")
    return is_outside or "\\" in name or not name.isprintable()


def _digest(path: Path) -> str:
    sha256 = bytes.fromhex(library_file.sha256_of(path))
    return f"sha256={base64.urlsafe_b64encode(sha256).decode('ascii').rstrip('=')}"
