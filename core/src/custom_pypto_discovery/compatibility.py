"""Whether a plugin's manifest is that of its distribution, and fits this host."""

from __future__ import annotations

from custom_pypto_contract import abi
from custom_pypto_contract.errors import how_to_install
from custom_pypto_contract.manifest import ANY_PLATFORM, Manifest

from custom_pypto_discovery.host import CORE, Host, major_minor
from custom_pypto_discovery.installed_plugin import (
    InstalledPlugin,
    normalize_name,
    reinstall,
)


def find_fault(plugin: InstalledPlugin, manifest: Manifest, host: Host) -> str:
    """Return the first thing that forbids to load `plugin`, with what to do; empty if nothing."""
    return (
        _identity(plugin, manifest)
        or _abi(manifest, host)
        or _platform(manifest, host)
        or _torch(manifest, host)
    )


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
            f"Upgrade the plugin: pip install --upgrade {manifest.distribution}; if there is no"
            f" newer version, it has to be built again with {core}"
        )
    return f"requires core ABI {_dotted(need)}, but {core} offers {_dotted(have)}. {fix}"


def _platform(manifest: Manifest, host: Host) -> str:
    if manifest.platform in (ANY_PLATFORM, host.platform):
        return ""
    return (
        f"was built for {manifest.platform}, but this Python runs on {host.platform}. Install the"
        f" wheel for this platform: pip install --force-reinstall --no-deps {manifest.distribution}"
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
