"""Finds the installed plugins, and decides which may load, before any of their code runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import ManifestError

from custom_pypto_discovery import (
    candidates,
    compatibility,
    library_file,
    ownership,
    resolution,
)
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import Host, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, reinstall

if TYPE_CHECKING:
    from custom_pypto_discovery.lock_file import Lock


def discover(environment: Environment, host: Host | None = None) -> tuple[InstalledPlugin, ...]:
    """Return every installed plugin: accepted, in loading order, then blocked and rejected."""
    host = this_host() if host is None else host
    lock = _read_lock(environment, host)
    return resolution.resolve(
        inspect(found, environment, host, lock) for found in candidates.find()
    )


def inspect(
    plugin: InstalledPlugin, environment: Environment, host: Host, lock: Lock | None = None
) -> InstalledPlugin:
    """Return `plugin` with its manifest, and blocked or rejected for what its files say."""
    if plugin.status is Status.ACCEPTED:
        plugin = _with_manifest(plugin)
    blocked = environment.reason_to_block(plugin.name)
    if blocked is not None:
        return plugin.block(blocked)
    fault = _fault(plugin, host, lock)
    return plugin.reject(fault) if fault else plugin


def _read_lock(environment: Environment, host: Host) -> Lock | None:
    if environment.lockfile is None:
        return None
    # An import of core without a lock file does not pay for this one.
    from custom_pypto_discovery import lock_file

    return lock_file.read(environment.lockfile, host.trusted_owners)


def _with_manifest(plugin: InstalledPlugin) -> InstalledPlugin:
    assert plugin.folder is not None, "a plugin without a package is rejected"
    try:
        found = manifest.read(plugin.folder / manifest.FILE_NAME)
    except ManifestError as error:
        return plugin.reject(f"{error}; {reinstall(plugin.distribution)}")
    library = found.library
    state = library_file.state(plugin.folder / library.path) if library else ()
    return replace(plugin, manifest=found, library_state=state)


def _fault(plugin: InstalledPlugin, host: Host, lock: Lock | None) -> str:
    if lock is not None and lock.problem:
        return f"{lock.problem}; {lock.advice}"
    if plugin.folder is None or plugin.manifest is None:
        return plugin.reason
    return (
        compatibility.find_fault(plugin, plugin.manifest, host)
        or _libraries(plugin)
        or ownership.find_fault(plugin, host.trusted_owners)
        or (lock.find_fault(plugin) if lock is not None else "")
    )


def _libraries(plugin: InstalledPlugin) -> str:
    assert plugin.folder is not None
    assert plugin.manifest is not None
    for library in (plugin.manifest.library, plugin.manifest.ascendc):
        fault = "" if library is None else library_file.find_fault(plugin.folder, library)
        if fault:
            return f"{fault}; {reinstall(plugin.distribution)}"
    return library_file.find_unnamed(plugin.folder, plugin.manifest)
