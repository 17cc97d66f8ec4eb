"""The installed distributions that say they are plugins, found without importing any of them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from custom_pypto_discovery import manifest

GROUP = "custom_pypto.plugins"
"""The entry point group: ``<plugin> = "<module>"`` in a plugin's pyproject.toml."""


@dataclass(frozen=True)
class Candidate:
    """A distribution with an entry point in `GROUP`.

    `module` is what the entry point names and `folder` the folder of its top-level package.
    `problem` says why the distribution cannot be judged any further, and is empty when it can.
    """

    name: str
    module: str
    distribution: str
    version: str
    folder: Path | None = None
    problem: str = ""

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.module.partition(".")[0]

    @property
    def order(self) -> tuple[str, str, str]:
        """What candidates are sorted by, so that the first of two claimants is always the same."""
        return normalized(self.distribution), self.name, self.module


def normalized(distribution: str) -> str:
    """Return the name of a distribution in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def find() -> tuple[Candidate, ...]:
    """Return the candidates sorted by `Candidate.order`; what is wrong with one is in `problem`.

    Of two distributions with one name on `sys.path` the first is taken, as an import would.
    """
    found = (_candidate(each) for each in _entry_points() if not _is_leftover(each))
    return tuple(sorted(found, key=lambda each: each.order))


def _entry_points() -> Iterable[metadata.EntryPoint]:
    try:
        return metadata.entry_points(group=GROUP)
    except Exception:
        # One distribution with broken metadata, anywhere, and the call above gives nothing at all.
        return list(_readable_entry_points())


def _readable_entry_points() -> Iterator[metadata.EntryPoint]:
    seen = set()
    for distribution in metadata.distributions():
        try:
            name = normalized(_headers(distribution)["name"])
            found = distribution.entry_points.select(group=GROUP)
        except Exception:
            # Whatever it is, it is no plugin that could be named.
            continue
        if name not in seen:
            yield from found
        seen.add(name)


def _is_leftover(entry_point: metadata.EntryPoint) -> bool:
    """Return whether it is what an interrupted pip left, which renames to ~ what it replaces."""
    folder = None if entry_point.dist is None else _dist_info(entry_point.dist)
    return folder is not None and folder.name.startswith("~")


def _candidate(entry_point: metadata.EntryPoint) -> Candidate:
    distribution, version, problem = _identity(entry_point)
    module = entry_point.value.strip()
    candidate = Candidate(entry_point.name, module, distribution, version, None, problem)
    if problem:
        return candidate
    if not all(part.isidentifier() for part in module.split(".")):
        return replace(
            candidate,
            problem=f"the entry point {entry_point.name!r} in the group {GROUP!r} names {module!r};"
            " it must name a module, such as 'custom_pypto_add_custom'",
        )
    return _located(candidate, entry_point)


def _identity(entry_point: metadata.EntryPoint) -> tuple[str, str, str]:
    """Return the distribution's name and version, and what is wrong with its metadata."""
    distribution = entry_point.dist
    if distribution is None:
        return "", "", "its entry point belongs to no distribution; reinstall it"
    try:
        headers = _headers(distribution)
    except Exception as error:
        reason = f"its metadata cannot be read: {type(error).__name__}: {error}"
        return _from_path(distribution), "", f"{reason}; reinstall it"
    name, version = headers.get("name", ""), headers.get("version", "")
    if not name or not version:
        missing = "version" if name else "name"
        problem = f"its metadata gives no {missing}; reinstall it"
        return name or _from_path(distribution), version, problem
    return name, version, ""


def _headers(distribution: metadata.Distribution) -> dict[str, str]:
    # Distribution.metadata takes a millisecond, for it parses the whole README as an e-mail.
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    lines = text.partition("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith((" ", "\t")))
    return {name.lower(): value.strip() for name, _, value in pairs}


def _from_path(distribution: metadata.Distribution) -> str:
    folder = _dist_info(distribution)
    return "" if folder is None else folder.name.partition(".dist-info")[0].partition("-")[0]


def _dist_info(distribution: metadata.Distribution) -> Path | None:
    # No public attribute gives it; absent on distributions that are not folders.
    path = getattr(distribution, "_path", None)
    return path if isinstance(path, Path) else None


def _located(candidate: Candidate, entry_point: metadata.EntryPoint) -> Candidate:
    package = candidate.package
    try:
        spec = importlib.util.find_spec(package)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return replace(candidate, problem=f"its package {package!r} cannot be looked up: {reason}")
    installed = _installed_folder(package, entry_point.dist)
    if spec is None or not spec.submodule_search_locations:
        if spec is not None:
            return replace(
                candidate, problem=_shadowed(package, spec.origin or "a namespace", installed)
            )
        return replace(
            candidate,
            problem=f"its package {package!r} is not installed; reinstall {candidate.distribution}",
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    if installed is not None and not _same(folder, installed):
        return replace(candidate, problem=_shadowed(package, str(folder), installed))
    return replace(candidate, folder=folder)


def _installed_folder(package: str, distribution: metadata.Distribution | None) -> Path | None:
    """Return the package's folder beside the metadata; None for an editable installation."""
    dist_info = None if distribution is None else _dist_info(distribution)
    if dist_info is None:
        return None
    folder = dist_info.parent / package
    try:
        return folder if (folder / manifest.FILE_NAME).is_file() else None
    except OSError:
        # A folder that this user may not look into; reading the manifest tells.
        return None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _shadowed(package: str, found: str, installed: Path | None) -> str:
    ours = "" if installed is None else f", which is {installed}"
    return (
        f"another module called {package!r}, {found}, comes before the plugin's package{ours};"
        " rename or remove that module, or take its folder out of sys.path"
    )
