"""Finds the installed plugins by their metadata, without importing any of them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from custom_pypto_contract import manifest, manifest_file
from custom_pypto_contract.manifest import GROUP, ManifestError

from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, normalize_name


def find() -> tuple[InstalledPlugin, ...]:
    """Return the distributions with an entry point of ours, sorted by `InstalledPlugin.order`.

    A plugin with wrong metadata or a wrong package is rejected; nothing else has been read yet. If
    several distributions on `sys.path` have one name, the one that owns the package that an import
    would find counts; if none does, the first.
    """
    found = (each for same_name in _distributions() for each in _candidates(same_name))
    return tuple(sorted(found, key=lambda each: each.order))


def _distributions() -> list[list[metadata.Distribution]]:
    """Return the distributions by name, for each name that has an entry point of ours.

    `metadata.entry_points` does not do: one broken distribution makes it return nothing, and of
    several with one name it takes the first that the file system lists.
    """
    found: dict[str, list[metadata.Distribution]] = {}
    with_plugins = set()
    for distribution in _installed():
        name = _name(distribution)
        # pip renames what it replaces to ~name; an interrupted pip leaves that.
        if name and not name.startswith("~"):
            found.setdefault(name, []).append(distribution)
            if _entry_points(distribution):
                with_plugins.add(name)
    return [same_name for name, same_name in found.items() if name in with_plugins]


def _installed() -> Iterator[metadata.Distribution]:
    """Yield all distributions, even if another finder raises."""
    for finder in list(sys.meta_path):
        try:
            find_distributions = getattr(finder, "find_distributions", None)
            if find_distributions is not None:
                yield from find_distributions(metadata.DistributionFinder.Context())
        except Exception:
            # Nobody can import what this finder finds.
            continue


def _name(distribution: metadata.Distribution) -> str:
    """Return the name to compare, or '' if it is unknown."""
    folder = _dist_info(distribution)
    if folder is not None and folder.suffix in {".dist-info", ".egg-info"}:
        return normalize_name(_from_path(distribution))
    try:
        return normalize_name(_headers(distribution)["name"])
    except Exception:
        # No plugin that could be named.
        return ""


def _entry_points(distribution: metadata.Distribution) -> Sequence[metadata.EntryPoint]:
    try:
        if GROUP not in (distribution.read_text("entry_points.txt") or ""):
            return ()
        return tuple(distribution.entry_points.select(group=GROUP))
    except Exception:
        # As good as none.
        return ()


def _candidates(same_name: Sequence[metadata.Distribution]) -> list[InstalledPlugin]:
    """Return the plugins of the distribution that the package on `sys.path` belongs to."""
    found = [[_candidate(each) for each in _entry_points(one)] for one in same_name]
    if len(found) == 1:
        return found[0]
    for plugins in found:
        for each in plugins:
            if each.folder is not None and _version_in(each.folder) == each.version:
                leftovers = _find_leftovers(each, each.folder, same_name)
                return [replace(plugin, leftovers=leftovers) for plugin in plugins]
    # None fits; the inspection of this one says why.
    located = (
        each for each in found if each and all(one.status is not Status.REJECTED for one in each)
    )
    return next(located, found[0])


def _version_in(folder: Path) -> str:
    """Return the version in a package's manifest."""
    try:
        return manifest_file.read(folder / manifest.FILE_NAME).version
    except ManifestError:
        return ""


def _find_leftovers(
    plugin: InstalledPlugin, folder: Path, same_name: Sequence[metadata.Distribution]
) -> tuple[Path, ...]:
    """Return the metadata folders of other versions without a package of their own."""
    found: list[Path] = []
    for distribution in same_name:
        path = _dist_info(distribution)
        if path is None or _identity(distribution)[1] == plugin.version:
            continue
        installed = _installed_folder(plugin.package, distribution)
        is_whole = installed is not None and not _same(installed, folder)
        if not is_whole and not _is_editable(distribution):
            found.append(path)
    # A folder may be on sys.path twice.
    return tuple(dict.fromkeys(found))


def _is_editable(distribution: metadata.Distribution) -> bool:
    """Return whether pip notes that its package is in its source folder."""
    try:
        return "editable" in (distribution.read_text("direct_url.json") or "")
    except Exception:
        return False


def _candidate(entry_point: metadata.EntryPoint) -> InstalledPlugin:
    distribution, version, problem = _identity(entry_point.dist)
    module = entry_point.value.strip()
    folder = None if entry_point.dist is None else _dist_info(entry_point.dist)
    plugin = InstalledPlugin(entry_point.name, module, distribution, version, metadata=folder)
    if problem:
        return plugin.reject(problem)
    if not all(part.isidentifier() for part in module.split(".")):
        return plugin.reject(
            f"the entry point {entry_point.name!r} in the group {GROUP!r} names {module!r};"
            " it must name a module, such as 'custom_pypto_add_custom'"
        )
    return _locate(plugin, entry_point)


def _identity(distribution: metadata.Distribution | None) -> tuple[str, str, str]:
    """Return the distribution's name and version, and what is wrong with its metadata."""
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
    return "" if folder is None else folder.stem.partition("-")[0]


def _dist_info(distribution: metadata.Distribution) -> Path | None:
    # There is no public attribute. Distributions that are no folders lack this one.
    path = getattr(distribution, "_path", None)
    return path if isinstance(path, Path) else None


def _locate(plugin: InstalledPlugin, entry_point: metadata.EntryPoint) -> InstalledPlugin:
    package = plugin.package
    try:
        spec = importlib.util.find_spec(package)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return plugin.reject(f"its package {package!r} cannot be looked up: {reason}")
    installed = _installed_folder(package, entry_point.dist)
    if spec is None:
        return plugin.reject(
            f"its package {package!r} is not installed; reinstall {plugin.distribution}"
        )
    if not spec.submodule_search_locations:
        return plugin.reject(_explain_shadowing(package, spec.origin or "a namespace", installed))
    folder = Path(next(iter(spec.submodule_search_locations)))
    if installed is not None and not _same(folder, installed):
        return plugin.reject(_explain_shadowing(package, str(folder), installed))
    return replace(plugin, folder=folder)


def _installed_folder(package: str, distribution: metadata.Distribution | None) -> Path | None:
    """Return the package's folder beside the metadata; None for an editable installation."""
    dist_info = None if distribution is None else _dist_info(distribution)
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
