"""Finds the installed plugins by their metadata, without importing any of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from custom_pypto_contract import manifest
from custom_pypto_contract.fork_locks import cached
from custom_pypto_contract.manifest import GROUP, ManifestError

from custom_pypto_discovery import distributions
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, delete, reinstall


def find() -> tuple[InstalledPlugin, ...]:
    """Return the distributions with an entry point of ours, sorted by `InstalledPlugin.order`.

    A plugin with wrong metadata or a wrong package is rejected; nothing else has been read yet. If
    several distributions on `sys.path` have one name, the one that owns the package that an import
    would find counts; if none does, the first.
    """
    found = (each for same_name in _distributions() for each in _candidates(same_name))
    return tuple(sorted(found, key=lambda each: each.order))


class _Distribution:
    """A distribution with its entry points of ours, each a name and a value, and its identity."""

    def __init__(self, distribution: metadata.Distribution) -> None:
        self.metadata = distribution
        self.folder = distributions.location(distribution)
        self.entry_points = tuple(distributions.entry_points(distribution, GROUP))

    @cached
    def identity(self) -> tuple[str, str, str]:
        """Its name and version, and what is wrong with its metadata."""
        in_path = distributions.name_in_path(self.metadata)
        try:
            headers = distributions.read_headers(self.metadata)
        except Exception as error:
            reason = f"its metadata cannot be read: {type(error).__name__}: {error}"
            return in_path, "", f"{reason}; {self._renew(in_path)}"
        name, version = headers.get("name", ""), headers.get("version", "")
        if not name or not version:
            missing = "version" if name else "name"
            reason = f"its metadata gives no {missing}"
            return name or in_path, version, f"{reason}; {self._renew(name or in_path)}"
        return name, version, ""

    def _renew(self, name: str) -> str:
        """Return the advice for broken metadata, over which older versions of pip stumble."""
        advice = reinstall(name)
        return advice if self.folder is None else f"{delete(self.folder)}, and {advice}"


def _distributions() -> list[list[_Distribution]]:
    """Return the distributions by name, for each name that has an entry point of ours.

    `metadata.entry_points` does not do: one broken distribution makes it return nothing, and of
    several with one name it takes the first that the file system lists.
    """
    found: dict[str, list[_Distribution]] = {}
    for distribution in distributions.installed():
        name = distributions.name_of(distribution)
        # pip renames what it replaces to ~name; an interrupted pip leaves that.
        if name and not name.startswith("~"):
            found.setdefault(name, []).append(_Distribution(distribution))
    return [same for same in found.values() if any(each.entry_points for each in same)]


def _candidates(same_name: Sequence[_Distribution]) -> list[InstalledPlugin]:
    """Return the plugins of the distribution that the package on `sys.path` belongs to."""
    found = [[_candidate(one, *each) for each in one.entry_points] for one in same_name]
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


def _candidate(owner: _Distribution, name: str, module: str) -> InstalledPlugin:
    distribution, version, problem = owner.identity
    plugin = InstalledPlugin(name, module, distribution, version, metadata=owner.folder)
    if problem:
        return plugin.reject(problem)
    problem = plugin.explain_module()
    return plugin.reject(problem) if problem else _locate(plugin)


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
    if installed is not None and not _same(folder, installed):
        return plugin.reject(_explain_shadowing(package, str(folder), installed))
    return replace(plugin, folder=folder)


def _installed_folder(package: str, dist_info: Path | None) -> Path | None:
    """Return the package's folder beside the metadata; None for an editable installation."""
    if dist_info is None:
        return None
    folder = dist_info.parent / package
    try:
        return folder if (folder / manifest.FILE_NAME).is_file() else None
    except OSError:
        # A folder that this user may not look into; reading the manifest reports it.
        return None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _explain_shadowing(package: str, found: str, installed: Path | None) -> str:
    ours = "" if installed is None else f", which is {installed}"
    return (
        f"another module called {package!r}, {found}, comes before the plugin's package{ours};"
        " rename or remove that module, or take its folder out of sys.path"
    )
