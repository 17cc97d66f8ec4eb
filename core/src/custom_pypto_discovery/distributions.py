"""The distributions on `sys.path`, and their metadata, whoever wrote it; imports none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from custom_pypto_contract import small_file

from custom_pypto_discovery.installed_plugin import normalize_name


def installed(name: str | None = None) -> Iterator[metadata.Distribution]:
    """Yield all distributions, or those called `name`, even if a foreign finder raises."""
    context = metadata.DistributionFinder.Context(name=name)
    for finder in list(sys.meta_path):
        try:
            find_distributions = getattr(finder, "find_distributions", None)
            if find_distributions is not None:
                yield from find_distributions(context)
        except Exception:
            # Nobody can import what this finder finds.
            continue


def read(distribution: metadata.Distribution, file: str, most: int = small_file.MAX_SIZE) -> str:
    """Return the text of one of the metadata's files, of at most `most` bytes; '' if there is none.

    Raises:
        OSError: it is no regular file or too large (see `small_file`), or cannot be read.
        Exception: the finder is a foreign one, and failed.
    """
    folder = location(distribution)
    if folder is None:
        return distribution.read_text(file) or ""
    try:
        return small_file.read(f"{folder}/{file}", most)
    except (FileNotFoundError, NotADirectoryError):
        return ""


def read_headers(distribution: metadata.Distribution) -> dict[str, str]:
    """Return the one-line headers of the metadata, by name in lower case; raises as `read` does."""
    # Distribution.metadata takes a millisecond, for it parses the whole README as an e-mail.
    text = read(distribution, "METADATA") or read(distribution, "PKG-INFO")
    headers = {}
    for line in text.splitlines():
        if not line:
            break
        if not line.startswith((" ", "\t")):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
    return headers


def entry_points(distribution: metadata.Distribution, group: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of its entry points in the group; none if they cannot be read."""
    try:
        text = read(distribution, "entry_points.txt")
    except Exception:
        # Treat them as if there were none.
        return
    yield from parse_entry_points(text, group) if group in text else ()


def parse_entry_points(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield the entry points of `group` in the text of an ``entry_points.txt``: name and value."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#") and section == f"[{group}]":
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def version(name: str) -> str | None:
    """Return the version of the distribution `name`: None if it is not installed, '' if unknown."""
    for distribution in installed(name):
        try:
            return read_headers(distribution).get("version", "")
        except Exception:
            return ""
    return None


def name_of(distribution: metadata.Distribution) -> str:
    """Return the name in the form in which names are compared, or '' if it is unknown."""
    folder = location(distribution)
    if folder is not None and folder.suffix in {".dist-info", ".egg-info"}:
        return normalize_name(name_in_path(distribution))
    try:
        return normalize_name(read_headers(distribution)["name"])
    except Exception:
        # Nobody could ask for it.
        return ""


def name_in_path(distribution: metadata.Distribution) -> str:
    """Return the name that the metadata's folder has, or '' if it is no folder."""
    folder = location(distribution)
    return "" if folder is None else folder.stem.partition("-")[0]


def location(distribution: metadata.Distribution) -> Path | None:
    """Return the metadata's folder, or file if it is one; None if it is neither."""
    # There is no public attribute. Distributions that are no folders lack this one.
    path = getattr(distribution, "_path", None)
    return path if isinstance(path, Path) else None
