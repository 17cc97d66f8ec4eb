"""Builds a plugin's library and describes it in the manifest."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from custom_pypto_contract import abi, elf, manifest, ops_file, platforms
from custom_pypto_contract.elf import ElfError
from custom_pypto_contract.errors import ContractError, how_to_install
from custom_pypto_contract.ops_file import OpsFile

from . import compiler, manylinux_tools, ops_header, ops_module, source_files
from .errors import BuildError
from .installed import find_torch
from .ninja import NinjaFile, run_ninja
from .settings import Settings, read_settings

_INCLUDED = re.compile(r"^\s*#\s*include\s*<(custom_pypto_\w+)/", re.MULTILINE)
# Hides what -fvisibility=hidden leaves visible, such as instances of the standard library's
# templates: the loader must never bind two plugins to one copy of them.
EXPORTS = "{ global: custom_pypto_*; local: *; };\n"


def library_path(plugin: Settings) -> str:
    """Where the library is in the plugin's package."""
    return f"lib/libcustom_pypto_{plugin.name}.so"


def object_folder(build_folder: Path, tag: str | None = None) -> Path:
    """Where in a build folder the objects for a platform are; by default for this machine's."""
    return build_folder / "custom-pypto" / (tag or platforms.platform_tag())


def build_project(root: Path, build_folder: Path) -> Path:
    """Build the library of the plugin in the folder `root`; see `build`."""
    plugin = read_settings(root)
    return build(plugin, read_ops(plugin), build_folder)


def build(plugin: Settings, ops: OpsFile, build_folder: Path) -> Path:
    """Compile and link what changed since the last build in `build_folder`; gives the library.

    The plugin must have sources.

    Raises:
        BuildError: it cannot be built.
    """
    platform = platforms.platform_tag()
    if not platform.startswith("linux_"):
        raise BuildError(f"plugins are built for Linux, this is {platform}")
    machine = platforms.machine(platform)
    torch, cxx = find_torch(), compiler.find_compiler()
    target = manylinux_tools.find_target()
    folder = object_folder(build_folder, target.tag if target else platform)
    if target is not None:
        stubs = plugin.root / folder / "stubs"
        torch = manylinux_tools.write_stubs(target, torch, stubs)
        cxx = manylinux_tools.find_compiler(target, cxx, stubs)
    library = folder / Path(library_path(plugin)).name
    common = compiler.compile_flags(plugin, torch)
    command = [*cxx.command, *common, *cxx.compile_flags]
    generated = folder / "generated"
    _write_header(ops, generated, command)
    common.append(f"-I{generated.as_posix()}")
    file = NinjaFile(folder, [*cxx.command, *common])
    if target is not None:
        libstdcxx = generated / manylinux_tools.LIBSTDCXX.name
        shutil.copy2(manylinux_tools.LIBSTDCXX, libstdcxx)
        file.compile(libstdcxx.as_posix(), cxx.compile_flags)
    for path in plugin.sources:
        file.compile(path, cxx.compile_flags)
    for path, kinds in plugin.isa_sources.items():
        for isa, flags in compiler.isa_flags(machine, kinds).items():
            file.compile(path, [*flags, *plugin.isa_flags, *cxx.compile_flags], isa)
    exports = folder / "exports.map"
    file.link(
        library.as_posix(),
        [*cxx.link_command, "-shared", "-fPIC"],
        [*compiler.link_flags(torch, exports), *cxx.link_flags],
    )
    ninja_file = file.write()
    exports.write_text(EXPORTS, encoding="utf-8")
    try:
        run_ninja(ninja_file, plugin.root)
    except BuildError as error:
        raise BuildError(f"{error}{_advise_on_headers(plugin)}") from None
    return plugin.root / library


def _advise_on_headers(plugin: Settings) -> str:
    """Say what to write where sources include headers of a package that is not named; else ''."""
    known = {*plugin.include_packages, plugin.package, "custom_pypto"}
    sources = {plugin.root / each for each in (*plugin.sources, *plugin.isa_sources)}
    for path in sorted(sources):
        for package in _INCLUDED.findall(path.read_text(encoding="utf-8", errors="replace")):
            if package not in known:
                return (
                    f". {path.name} includes headers of {package}: in pyproject.toml, write"
                    f' include-packages = ["{package}"] in [tool.custom-pypto], and name'
                    f" {package.replace('_', '-')} in requires of [build-system]"
                )
    return ""


def install(
    library: Path | None,
    plugin: Settings,
    ops: OpsFile,
    package: Path,
    *,
    distribution: str,
    version: str,
    ascendc: manifest.AscendcLibrary | None = None,
    kernels: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Put `library` (None: there is none), functions and manifest into the folder `package`.

    The library `ascendc` is in that folder already. `kernels` are as in the manifest.

    Raises:
        BuildError: the library is not a plugin's, or not for this platform.
    """
    described = None
    platform, core_abi = manifest.ANY_PLATFORM, abi.CORE_ABI
    if library is not None:
        path = library_path(plugin)
        source_files.replace(library, package / path)
        contents = library.read_bytes()
        described = manifest.Library(path, hashlib.sha256(contents).hexdigest())
        platform = platforms.platform_tag()
        core_abi = _core_abi(library, contents, platforms.machine(platform))
    description = manifest.Manifest(
        name=plugin.name,
        distribution=distribution,
        version=version,
        core_abi=core_abi,
        torch_target=abi.OLDEST_TORCH,
        platform=platform,
        ops=tuple(manifest.make_op(op.data) for op in sorted(ops.ops, key=lambda op: op.name)),
        requires_ops=plugin.requires_ops,
        library=described,
        opp=None if plugin.opp is None else manifest.OPP_FOLDER,
        ascendc=ascendc,
        kernels=kernels,
    )
    try:
        manifest.parse(description.to_json())
    except manifest.ManifestError as error:
        raise BuildError(f"the plugin's manifest would not be valid: {error}") from None
    ops_module.write(plugin.name, ops, package)
    description.write(package / manifest.FILE_NAME)


def read_ops(plugin: Settings) -> OpsFile:
    """Return what the plugin's ops.toml says.

    Raises:
        BuildError: it is missing, or says something that it cannot mean.
    """
    try:
        return ops_file.read(plugin.root / ops_file.FILE_NAME)
    except ContractError as error:
        raise BuildError(str(error)) from None


def _write_header(ops: OpsFile, folder: Path, command: Sequence[str]) -> None:
    """Write ops.h into `folder`, unless it is as it must be; `command` is the compiler."""
    header = folder / ops_header.FILE_NAME
    try:
        text = ops_header.header_text(ops, compiler.find_macros(command, ops_header.INCLUDES))
    except ContractError as error:
        raise BuildError(str(error)) from None
    if not header.is_file() or header.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        header.write_text(text, encoding="utf-8")


def _core_abi(library: Path, contents: bytes, machine: str) -> tuple[int, int]:
    """Return the core ABI of the headers that `library`, with `contents`, was compiled with."""
    try:
        found = elf.read(contents)
    except ElfError as error:
        raise BuildError(f"{library} {error}; plugins are built for 64-bit Linux") from None
    if found.machine != machine:
        raise BuildError(
            f"the compiler built for {found.machine}, but the wheel is for {machine}; when"
            f" cross-compiling, set _PYTHON_HOST_PLATFORM=linux-{found.machine}"
        )
    if found.core_abi is None:
        raise BuildError(
            f"{library} does not record the core ABI that it was compiled for; register its ops"
            " with CUSTOM_PYPTO_PLUGIN of custom_pypto/plugin.h"
        )
    if not abi.offers(abi.CORE_ABI, found.core_abi):
        need, have = (".".join(map(str, each)) for each in (found.core_abi, abi.CORE_ABI))
        raise BuildError(
            f"the headers of custom-pypto-core have the core ABI {need}, but this"
            f" custom-pypto-build knows {have}; install the versions of both that belong together:"
            f" {how_to_install('custom-pypto-build', 'custom-pypto-core')}"
        )
    return found.core_abi
