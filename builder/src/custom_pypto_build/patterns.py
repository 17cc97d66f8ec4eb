"""Patterns in pyproject.toml, and the files that they match."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from custom_pypto_contract.errors import did_you_mean

from .errors import BuildError

SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
_LONGEST_NAME = 255


def sources(root: Path, key: str, patterns: Sequence[str]) -> list[str]:
    """The C++ files below `root` that `patterns` match, relative to it, each once; sorted.

    Raises:
        BuildError: there is no pattern, one matches nothing, or what it matches is no source. The
            text names `key`, where the patterns stand.
    """
    if not patterns:
        raise BuildError(f"pyproject.toml: {key} is empty; name the C++ files to compile")
    return sorted({path for pattern in patterns for path in _sources(root, key, pattern)})


def glob(root: Path, key: str, pattern: str) -> list[str]:
    """The files below `root` that `pattern` matches, relative to it.

    Raises:
        BuildError: it is no pattern, or one of files elsewhere.
    """
    check_inside(key, pattern)
    try:
        return [p.relative_to(root).as_posix() for p in root.glob(pattern) if p.is_file()]
    except ValueError as error:
        raise BuildError(f"pyproject.toml: {key}: {pattern!r}: {error}") from None


def check_inside(key: str, path: str) -> None:
    """Refuse a path or pattern that does not stay below the folder of pyproject.toml.

    Raises:
        BuildError: always then.
    """
    parts = PurePosixPath(path).parts
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise BuildError(f"pyproject.toml: {key}: no file has a name as long as in {path!r}")
    if not parts or path.startswith("/") or ".." in parts:
        raise BuildError(
            f"pyproject.toml: {key}: {path!r} must be a path below the folder of pyproject.toml, so"
            " that a source distribution can hold it"
        )


def _sources(root: Path, key: str, pattern: str) -> list[str]:
    paths = glob(root, key, pattern)
    if not paths:
        folder = PurePosixPath(pattern).parent
        raise BuildError(
            f"pyproject.toml: {key}: {pattern!r} matches no file in {root}"
            + did_you_mean(pattern, _files_like(root, folder))
        )
    for path in paths:
        if PurePosixPath(path).suffix not in SOURCE_SUFFIXES:
            raise BuildError(
                f"pyproject.toml: {key}: {pattern!r} matches {path!r}; a source ends in"
                f" {', '.join(SOURCE_SUFFIXES)}; headers are found through"
                " tool.custom-pypto.include-dirs"
            )
    return paths


def _files_like(root: Path, folder: PurePosixPath) -> list[str]:
    inside = root / folder
    if any(c in str(folder) for c in "*?["):
        return []
    return [p.relative_to(root).as_posix() for p in inside.glob("*")] if inside.is_dir() else []
