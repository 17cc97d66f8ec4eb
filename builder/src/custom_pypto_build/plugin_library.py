"""Builds a plugin's library and describes it in the manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from custom_pypto_contract import manifest, platforms

from . import compiler, instruction_sets, source_files
from .elf import Elf
from .errors import BuildError
from .ninja import NinjaFile, run_ninja
from .settings import Settings
from .torch_headers import find_torch

OPP_FOLDER = "opp"
SCHEMA_SECTION = "custom_pypto_schemas"
# Hides what -fvisibility=hidden leaves visible, such as instances of the standard library's
# templates: the loader must never bind two plugins to one copy of them.
EXPORTS = "{ global: custom_pypto_*; local: *; };\n"
ENTRY_FUNCTIONS = ("custom_pypto_register_v1", "custom_pypto_unregister_v1")


def library_path(plugin: Settings) -> str:
    """Where the library is in the plugin's package."""
    return f"lib/libcustom_pypto_{plugin.name}.so"


def build(plugin: Settings, build_folder: Path) -> Path:
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
    file = NinjaFile(folder, [*cxx.command, *compiler.compile_flags(plugin, torch)])
    for source in sources:
        file.compile(source.path, [*source.flags, *cxx.compile_flags])
    for source in plugin.isa_sources:
        for isa, flags in instruction_sets.of_machine(compiler.core_include(), machine).items():
            of_isa = [f"-DCUSTOM_PYPTO_CPU_ISA={isa}", *flags, *source.flags, *cxx.compile_flags]
            file.compile(source.path, of_isa, isa)
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
    library: Path | None, plugin: Settings, package: Path, *, distribution: str, version: str
) -> None:
    """Put `library` (None: there is none) and the manifest into the folder `package`.

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
    description = manifest.Manifest(
        name=plugin.name,
        distribution=distribution,
        version=version,
        core_abi=manifest.CORE_ABI,
        torch_target=".".join(map(str, manifest.TORCH_TARGET)),
        platform=platform,
        ops=ops(plugin, library),
        requires_ops=plugin.requires_ops,
        library=described,
        opp=None if plugin.opp is None else OPP_FOLDER,
    )
    try:
        manifest.parse(description.to_json())
    except manifest.ManifestError as error:
        raise BuildError(f"the plugin's manifest would not be valid: {error}") from None
    description.write(package / manifest.FILE_NAME)


def ops(plugin: Settings, library: Path | None) -> tuple[manifest.Op, ...]:
    """The ops of the plugin.

    Raises:
        BuildError: they are not said, or not rightly.
    """
    # CONTRACT: the ops of ops.toml go here, with and without a library; read_ops, elf.py and this
    # error go.
    if library is None:
        raise BuildError(
            f"{plugin.root}: nothing says what ops the plugin has; name its C++ files in"
            ' tool.custom-pypto of pyproject.toml, such as sources = ["csrc/**/*.cpp"]'
        )
    return read_ops(library, platforms.machine(platforms.platform_tag()))


def read_ops(library: Path, machine: str) -> tuple[manifest.Op, ...]:
    """The ops whose schemas `library` holds, by name.

    Raises:
        BuildError: it was built for another machine, has no entry functions, no schema, or one that
            is malformed or there twice.
    """
    elf = Elf(library)
    if elf.machine != machine:
        raise BuildError(
            f"the compiler built for {elf.machine}, but the wheel is for {machine}; when"
            f" cross-compiling, set _PYTHON_HOST_PLATFORM=linux-{elf.machine}"
        )
    if not elf.exports().issuperset(ENTRY_FUNCTIONS):
        raise BuildError(
            "the library has no registration function; one source must include"
            " <custom_pypto/plugin.h> and hold CUSTOM_PYPTO_PLUGIN(plugin) { ... }"
        )
    texts = [text for text in elf.section(SCHEMA_SECTION).split(b"\0") if text]
    if not texts:
        raise BuildError(
            "no schema was found in the library; write each as"
            ' plugin.def(CUSTOM_PYPTO_SCHEMA("my_op(Tensor self) -> Tensor"))'
        )
    try:
        ops = [manifest.op_of_schema(text.decode()) for text in texts]
    except (manifest.ManifestError, UnicodeDecodeError) as error:
        raise BuildError(f"CUSTOM_PYPTO_SCHEMA: {error}") from None
    names = [op.name for op in ops]
    for name in names:
        if names.count(name) > 1:
            raise BuildError(f"CUSTOM_PYPTO_SCHEMA: {name!r} is defined more than once")
    return tuple(sorted(ops, key=lambda op: op.name))
