"""Builds a plugin's library and describes it in the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from custom_pypto_contract import abi, manifest, manifest_file, ops_file, platforms
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.ops_file import OpsFile

from . import compiler, instruction_sets, ops_header, ops_module, source_files
from .errors import BuildError
from .ninja import NinjaFile, run_ninja
from .settings import Settings, read_settings
from .torch_headers import find_torch

OPP_FOLDER = "opp"
# Hides what -fvisibility=hidden leaves visible, such as instances of the standard library's
# templates: the loader must never bind two plugins to one copy of them.
EXPORTS = "{ global: custom_pypto_*; local: *; };\n"
# By their number in the header of an ELF file.
_MACHINES = {
    21: "ppc64le",
    22: "s390x",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}


def library_path(plugin: Settings) -> str:
    """Where the library is in the plugin's package."""
    return f"lib/libcustom_pypto_{plugin.name}.so"


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
    sources = [source for source in plugin.sources if source.is_for(machine)]
    if not sources:
        raise BuildError(
            f"pyproject.toml: tool.custom-pypto.per-file leaves no source for {machine}; at least"
            " one must be for every machine"
        )
    torch = find_torch()
    cxx = compiler.find_compiler()
    folder = build_folder / platform
    library = folder / Path(library_path(plugin)).name
    common = compiler.compile_flags(plugin, torch)
    command = [*cxx.command, *common, *cxx.compile_flags]
    generated = _write_header(ops, folder / "generated", command)
    common.append(f"-I{generated.as_posix()}")
    file = NinjaFile(folder, [*cxx.command, *common])
    for source in sources:
        file.compile(source.path, [*source.flags, *cxx.compile_flags])
    for source in plugin.isa_sources:
        isas = instruction_sets.of_machine(compiler.core_include(), machine, int8=source.int8)
        for isa, flags in isas.items():
            file.compile(source.path, [*flags, *source.flags, *cxx.compile_flags], isa)
    exports = folder / "exports.map"
    file.link(
        library.as_posix(),
        [*cxx.command, "-shared", "-fPIC"],
        [*compiler.link_flags(torch, exports), *cxx.link_flags],
    )
    ninja_file = file.write()
    exports.write_text(EXPORTS, encoding="utf-8")
    run_ninja(ninja_file, plugin.root)
    return plugin.root / library


def install(
    library: Path | None,
    plugin: Settings,
    ops: OpsFile,
    package: Path,
    *,
    distribution: str,
    version: str,
    kernels: manifest.AscendcLibrary | None = None,
) -> None:
    """Put `library` (None: there is none), functions and manifest into the folder `package`.

    `kernels` are in that folder already.

    Raises:
        BuildError: the library is not a plugin's, or not for this platform.
    """
    described = None
    platform = manifest.ANY_PLATFORM
    if library is not None:
        path = library_path(plugin)
        source_files.replace(library, package / path)
        described = manifest.Library(path, hashlib.sha256(library.read_bytes()).hexdigest())
        platform = platforms.platform_tag()
        _check_machine(library, platforms.machine(platform))
    description = manifest.Manifest(
        name=plugin.name,
        distribution=distribution,
        version=version,
        core_abi=abi.CORE_ABI,
        torch_target=".".join(map(str, abi.TORCH_TARGET)),
        platform=platform,
        ops=tuple(
            manifest.make_op(op.schema.text, op.data)
            for op in sorted(ops.ops, key=lambda op: op.name)
        ),
        requires_ops=plugin.requires_ops,
        library=described,
        opp=None if plugin.opp is None else OPP_FOLDER,
        ascendc=kernels,
    )
    try:
        manifest_file.parse(description.to_json())
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


def _write_header(ops: OpsFile, folder: Path, command: Sequence[str]) -> Path:
    """Write ops.h into `folder`, unless it is there as it must be; gives the folder.

    `command` is the compiler with its flags.
    """
    header = folder / ops_header.FILE_NAME
    try:
        text = ops_header.header_text(ops, compiler.find_macros(command, ops_header.INCLUDES))
    except ContractError as error:
        raise BuildError(str(error)) from None
    if not header.is_file() or header.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        header.write_text(text, encoding="utf-8")
    return folder


def _check_machine(library: Path, machine: str) -> None:
    with library.open("rb") as file:
        header = file.read(20)
    if header[:5] != b"\x7fELF\x02":
        raise BuildError(
            f"{library} is not a 64-bit ELF library; plugins are built for 64-bit Linux"
        )
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    built_for = _MACHINES.get(number, f"machine {number}")
    if built_for != machine:
        raise BuildError(
            f"the compiler built for {built_for}, but the wheel is for {machine}; when"
            f" cross-compiling, set _PYTHON_HOST_PLATFORM=linux-{built_for}"
        )
