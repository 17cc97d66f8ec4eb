"""The manifest of a wheel: plugin, core ABI, contracts and kernels of its ops."""

from __future__ import annotations

from collections.abc import Iterator

from custom_pypto_cli.report import Check
from custom_pypto_contract import abi, contract_data
from custom_pypto_contract.manifest import Manifest, ManifestOp
from custom_pypto_discovery.dispatch_keys import has_device
from custom_pypto_discovery.host import CORE
from custom_pypto_discovery.installed_plugin import normalize_name

from custom_pypto_build.wheel_check.contents import BUILD_AGAIN
from custom_pypto_build.wheel_check.plugin_wheel import PluginWheel


def probes(wheel: PluginWheel) -> Iterator[Check]:
    """Read the manifest, and compare it with metadata and library."""
    manifest = wheel.manifest
    if isinstance(manifest, str):
        yield Check("manifest", "none that can be read").with_problem(manifest, BUILD_AGAIN)
        return
    yield _identity(wheel, manifest)
    yield _core_abi(wheel, manifest)
    yield Check("torch", f"{manifest.torch_target} or newer")
    if manifest.kernels is None:
        yield Check("kernels", "not known").with_note(
            "the build did not import the plugin, so nobody knows which ops have kernels",
            f"build it where torch and {CORE} are, for that machine; else test it where it runs:"
            f" python -m custom_pypto_testing {manifest.name}",
        )
    for op in manifest.ops:
        yield _op(op, manifest)


def _identity(wheel: PluginWheel, manifest: Manifest) -> Check:
    probe = Check("manifest", f"{manifest.name} of {manifest.distribution} {manifest.version}")
    [(name, _)] = wheel.entry_points
    expected = (name, normalize_name(wheel.file.distribution), wheel.file.version)
    if (manifest.name, normalize_name(manifest.distribution), manifest.version) != expected:
        return probe.with_problem(
            f"the wheel is {name} of {wheel.file.distribution} {wheel.file.version}", BUILD_AGAIN
        )
    return probe


def _core_abi(wheel: PluginWheel, manifest: Manifest) -> Check:
    need = _dotted(manifest.core_abi)
    probe = Check("core ABI", need)
    library = wheel.library
    if not isinstance(library, str):
        if library.core_abi is None:
            return probe.with_problem(
                "the library does not record the core ABI that it was compiled for",
                "build it with this custom-pypto-build; register the ops with CUSTOM_PYPTO_PLUGIN",
            )
        if library.core_abi != manifest.core_abi:
            return probe.with_problem(
                f"the library was compiled with headers of core ABI {_dotted(library.core_abi)},"
                f" the manifest says {need}",
                BUILD_AGAIN,
            )
    if not abi.offers(abi.CORE_ABI, manifest.core_abi):
        return probe.with_note(
            f"this core has the core ABI {_dotted(abi.CORE_ABI)}, and would not load the plugin",
            f"pip install --upgrade {CORE}, or build the plugin with this one",
        )
    return probe


def _op(op: ManifestOp, manifest: Manifest) -> Check:
    keys = None if manifest.kernels is None else manifest.kernels.get(op.name, ())
    probe = Check(op.name, "kernels not known" if keys is None else ", ".join(keys) or "no kernel")
    try:
        contract_data.read_contract(op.data)
    except Exception as error:
        # The data is anybody's: what reading it raises says what is wrong with it.
        return probe.with_problem(
            f"its contract cannot be read: {type(error).__name__}: {error}", BUILD_AGAIN
        )
    if keys is not None and not has_device(keys):
        return probe.with_problem(
            f"{op.name} has no kernel for any device",
            "register one in C++ or by the hook custom_pypto_kernels",
        )
    return probe


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
