"""What the files of a candidate say: its manifest, and the state of its library."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import Manifest, ManifestError

from custom_pypto_discovery.candidates import Candidate


@dataclass(frozen=True)
class File:
    """A file or folder that must be safe to load code from, as it is on disk."""

    path: Path
    owner: int
    world_writable: bool


@dataclass(frozen=True)
class LibraryFile:
    """The library that a manifest names.

    `path` is where it is after all links were followed. `guarded` are the library and the folders
    that lead to it from the package. `problem` says why the rest is not known.
    """

    path: Path
    sha256: str = ""
    inside_package: bool = True
    guarded: tuple[File, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Claim:
    """A candidate with what its files say.

    Without a `manifest`, `problem` says why there is none. `library` is None when it was not looked
    at, because there is no manifest or because the plugin is blocked.
    """

    candidate: Candidate
    manifest: Manifest | None = None
    library: LibraryFile | None = None
    problem: str = ""


def read(candidate: Candidate, *, with_library: bool = True) -> Claim:
    """Return the claim of `candidate`; what is wrong is in the claim, nothing is raised."""
    if candidate.problem or candidate.folder is None:
        return Claim(candidate, problem=candidate.problem or "its package was not found")
    try:
        found = manifest.read(candidate.folder / manifest.FILE_NAME)
    except ManifestError as error:
        return Claim(candidate, problem=str(error))
    library = _library(candidate.folder, found.library.path) if with_library else None
    return Claim(candidate, found, library)


def _library(folder: Path, relative: str) -> LibraryFile:
    given = folder / relative
    try:
        package = folder.resolve(strict=True)
        path = given.resolve(strict=True)
        inside = path.is_relative_to(package)
        if not path.is_file():
            return LibraryFile(path, problem=f"its library {given} is not a file")
        contents = path.read_bytes()
        guarded = (path, *_folders(path, package)) if inside else (path,)
        return LibraryFile(
            path, hashlib.sha256(contents).hexdigest(), inside, tuple(map(_file, guarded))
        )
    except FileNotFoundError:
        return LibraryFile(given, problem=f"its library {given} is missing")
    except (OSError, RuntimeError) as error:
        return LibraryFile(given, problem=f"its library {given} cannot be read: {error}")


def _folders(path: Path, package: Path) -> list[Path]:
    return [folder for folder in path.parents if folder.is_relative_to(package)]


def _file(path: Path) -> File:
    status = path.stat()
    writable = bool(status.st_mode & stat.S_IWOTH)
    # In a sticky folder nobody replaces the files of others.
    sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    return File(path, status.st_uid, writable and not sticky)


def trusted_owners() -> frozenset[int]:
    """Return the user ids whose files may be loaded: root, this user, the owner of core's files."""
    return frozenset({0, os.geteuid(), Path(__file__).stat().st_uid})
