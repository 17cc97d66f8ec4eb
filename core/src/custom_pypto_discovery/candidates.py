"""Finds the installed plugins by their metadata, without importing any of them."""

# With many plugins, Path would take more time.
# ruff: noqa: PTH113

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import GROUP, ManifestError

from custom_pypto_discovery import distributions
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, delete, reinstall


def find() -> tuple[InstalledPlugin, ...]:
    """Return the distributions with an entry point of ours.

    A plugin with wrong metadata or a wrong package is rejected; nothing else has been read yet. If
    several distributions on `sys.path` have one name, the one that owns the package that an import
    would find counts; if none does, the first.
    """
    return tuple(each for same_name in _distributions() for each in _candidates(same_name))


_Found = tuple[metadata.Distribution, list[tuple[str, str]]]
"""A distribution with its entry points of ours, each a name and a value."""


def _distributions() -> list[list[_Found]]:
    """Return the distributions by name, for each name that has an entry point of ours.

    `metadata.entry_points` does not do: one broken distribution makes it return nothing, and of
    several with one name it takes the first that the file system lists.
    """
    found: dict[str, list[_Found]] = {}
    for distribution in distributions.installed():
        name = distributions.name_of(distribution)
        # pip renames what it replaces to ~name; an interrupted pip leaves that.
        if name and not name.startswith("~"):
            ours = [*distributions.entry_points(distribution, GROUP)]
            found.setdefault(name, []).append((distribution, ours))
    return [same for same in found.values() if any(ours for _, ours in same)]


def _candidates(same_name: Sequence[_Found]) -> list[InstalledPlugin]:
    """Return the plugins of the distribution that the package on `sys.path` belongs to."""
    found = [[_candidate(owner, *each) for each in ours] for owner, ours in same_name]
    if len(found) == 1:
        return found[0]
    for plugins in found:
        for each in plugins:
            if each.folder is not None and _version_in(each.folder) == each.version:
                return plugins
    # None fits; the inspection of this one says why.
    located = (
        each for each in found if each and all(one.status is not Status.REJECTED for one in each)
    )
    return next(located, found[0])


def _version_in(folder: Path) -> str:
    """Return the version in a package's manifest."""
    try:
        return manifest.read(folder / manifest.FILE_NAME).version
    except ManifestError:
        return ""


def _candidate(owner: metadata.Distribution, name: str, module: str) -> InstalledPlugin:
    distribution, version, problem = _identity(owner)
    folder = distributions.location(owner)
    plugin = InstalledPlugin(name, module, distribution, version, metadata=folder)
    if problem:
        # Older versions of pip stumble over broken metadata.
        remedy = reinstall(distribution)
        remedy = remedy if folder is None else f"{delete(folder)}, and {remedy}"
        return plugin.reject(f"{problem}; {remedy}")
    problem = plugin.explain_module()
    return plugin.reject(problem) if problem else _locate(plugin)


def _identity(owner: metadata.Distribution) -> tuple[str, str, str]:
    """Return name and version of a distribution, and what is wrong with its metadata."""
    in_path = distributions.name_in_path(owner)
    try:
        headers = distributions.read_headers(owner)
    except Exception as error:
        return in_path, "", f"its metadata cannot be read: {type(error).__name__}: {error}"
    name, version = headers.get("name", ""), headers.get("version", "")
    missing = "name" if not name else "version" if not version else ""
    return name or in_path, version, f"its metadata gives no {missing}" if missing else ""


def _locate(plugin: InstalledPlugin) -> InstalledPlugin:
    package = plugin.package
    try:
        spec = importlib.util.find_spec(package)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return plugin.reject(f"its package {package!r} cannot be looked up: {reason}")
    installed = _installed_folder(package, plugin.metadata)
    if spec is None:
        return plugin.reject(
            f"its package {package!r} is not installed; {reinstall(plugin.distribution)}"
        )
    if not spec.submodule_search_locations:
        return plugin.reject(_explain_shadowing(package, spec.origin or "a namespace", installed))
    folder = Path(next(iter(spec.submodule_search_locations)))
    if installed is not None and os.path.realpath(folder) != os.path.realpath(installed):
        return plugin.reject(_explain_shadowing(package, str(folder), installed))
    return replace(plugin, folder=folder)


def _installed_folder(package: str, dist_info: Path | None) -> Path | None:
    """Return the package's folder beside the metadata; None for an editable installation."""
    if dist_info is None:
        return None
    folder = dist_info.parent / package
    return folder if os.path.isfile(folder / manifest.FILE_NAME) else None


def _explain_shadowing(package: str, found: str, installed: Path | None) -> str:
    ours = "" if installed is None else f", which is {installed}"
    return (
        f"another module called {package!r}, {found}, comes before the plugin's package{ours};"
        " rename or remove that module, or take its folder out of sys.path"
    )
