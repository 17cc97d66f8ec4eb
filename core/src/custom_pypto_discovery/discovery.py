"""Finds the installed plugins, and decides which may load, before any of their code runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from custom_pypto_contract import abi, manifest
from custom_pypto_contract.errors import how_to_install
from custom_pypto_contract.manifest import ANY_PLATFORM, Manifest, ManifestError

from custom_pypto_discovery import candidates, library_file, ownership, resolution
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import CORE, Host, major_minor, this_host
from custom_pypto_discovery.installed_plugin import (
    InstalledPlugin,
    Status,
    install_again,
    normalize_name,
    reinstall,
    upgrade,
)

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
        _identity(plugin, plugin.manifest)
        or _abi(plugin.manifest, host)
        or _platform(plugin.manifest, host)
        or _torch(plugin.manifest, host)
        or _libraries(plugin, plugin.folder, plugin.manifest)
        or ownership.find_fault(plugin, host.trusted_owners)
        or (lock.find_fault(plugin) if lock is not None else "")
    )


def _libraries(plugin: InstalledPlugin, folder: Path, manifest: Manifest) -> str:
    for library in filter(None, (manifest.library, manifest.ascendc)):
        if fault := library_file.find_fault(folder, library):
            return f"{fault}; {reinstall(plugin.distribution)}"
    return library_file.find_unnamed(folder, manifest)


def _identity(plugin: InstalledPlugin, manifest: Manifest) -> str:
    if manifest.name != plugin.name:
        return (
            f"its entry point calls it {plugin.name!r}, its manifest {manifest.name!r};"
            " give the entry point the plugin's name and build it again"
        )
    if normalize_name(manifest.distribution) != normalize_name(plugin.distribution):
        return (
            f"{plugin.folder} belongs to the distribution {manifest.distribution}, not to"
            f" {plugin.distribution}; {reinstall(plugin.distribution)}"
        )
    if manifest.version != plugin.version:
        return (
            f"its files are of version {manifest.version}, but {plugin.distribution}"
            f" {plugin.version} is installed; {reinstall(plugin.distribution)}"
        )
    return ""


def _abi(manifest: Manifest, host: Host) -> str:
    need, have = manifest.core_abi, host.core_abi
    if abi.offers(have, need):
        return ""
    core = f"{CORE} {host.core_version}".strip()
    if need > have:
        fix = f"Upgrade core: {how_to_install(CORE)}"
    else:
        fix = (
            f"Upgrade the plugin: {upgrade(manifest.distribution)}; if there is no newer version,"
            f" it has to be built again with {core}"
        )
    return f"requires core ABI {_dotted(need)}, but {core} offers {_dotted(have)}. {fix}"


def _platform(manifest: Manifest, host: Host) -> str:
    if manifest.platform in (ANY_PLATFORM, host.platform):
        return ""
    return (
        f"was built for {manifest.platform}, but this Python runs on {host.platform}. Install the"
        f" wheel for this platform: {install_again(manifest.distribution)}"
    )


def _torch(manifest: Manifest, host: Host) -> str:
    need = major_minor(manifest.torch_target)
    if need is None or host.torch is None or need <= host.torch:
        return ""
    return (
        f"requires torch {_dotted(need)} or newer, but torch {_dotted(host.torch)} is installed."
        f" Upgrade it: pip install --upgrade 'torch>={_dotted(need)}'"
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
