"""Builds simulated NPU kernels: libraries for tests alone, in the layout of an opp package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract.manifest import OPP_LIBRARY

from . import compiler, source_files
from .errors import BuildError
from .ninja import NinjaFile, run_ninja
from .settings import Settings, ascendc_stem, read_settings

_PRIORITY = "load_priority="
# AscendC's launch, which is no C++: kernel<<<blocks, l2ctrl, stream>>>(arguments...)
_LAUNCH = re.compile(r"\b(?P<kernel>\w+)\s*<<<(?P<how>[^<>]*)>>>")


@dataclass(frozen=True)
class Toolchain:
    """Flags and libraries of simulated kernels, as the installed simulator gives them.

    `aclnn_flags` are more flags of all sources but AscendC's.
    """

    compile_flags: tuple[str, ...]
    aclnn_flags: tuple[str, ...]
    link_flags: tuple[str, ...]


def build(
    projects: Iterable[Path], folder: Path, build_folder: Path, toolchain: Toolchain
) -> dict[str, Path]:
    """Build what ``[tool.custom-pypto.simulated-kernels]`` of each of `projects` names.

    Kernels that several projects name for one vendor become one library,
    ``<folder>/vendors/<vendor>/op_api/lib/libcust_opapi.so``, but for a plugin's own AscendC
    kernels: ``libcustom_pypto_<plugin>_ascendc.so`` beside it. ``<folder>/vendors/config.ini``
    gives these vendors priority, in the order in which they are named first. So `folder` can be
    ASCEND_OPP_PATH, and each of the folders returned, ``<folder>/vendors/<vendor>`` by vendor, an
    entry of ASCEND_CUSTOM_OPP_PATH.

    Compiles what changed since the last build in `build_folder`; two processes must not use that at
    a time.

    Raises:
        BuildError: a project names no kernels, `folder` is what its wheel ships, or they cannot be
            built; the text says why.
    """
    sources: dict[tuple[str, str], list[tuple[Settings, str]]] = {}
    for project in projects:
        try:
            kernels = read_settings(project.resolve(), is_plugin=False)
        except BuildError as error:
            raise BuildError(f"{project}: {error}") from None
        if not kernels.simulated_kernels:
            raise BuildError(
                f"{project} names no simulated kernels; name the C++ files of a vendor in its"
                " pyproject.toml:"
                ' [tool.custom-pypto.simulated-kernels]  custom = ["tests/npu/custom.cpp"]'
            )
        if kernels.opp is not None and folder.resolve().is_relative_to(kernels.root / kernels.opp):
            raise BuildError(
                f"simulated kernels in {folder} would be a part of the wheel, whose"
                f" tool.custom-pypto.opp is {kernels.opp!r}; choose another folder for them"
            )
        for vendor, files in kernels.simulated_kernels.items():
            for file in files:
                is_own = file in kernels.ascendc_sources
                name = f"{ascendc_stem(kernels.name)}.so" if is_own else OPP_LIBRARY.name
                sources.setdefault((vendor, name), []).append((kernels, file))
    if not sources:
        raise BuildError("no project was given; name folders whose pyproject.toml names kernels")
    opp = folder / "vendors"
    for (vendor, name), of_library in sources.items():
        scratch = build_folder / vendor / Path(name).stem
        library = _build_library(vendor, name, of_library, scratch, toolchain)
        source_files.replace(library, opp / vendor / OPP_LIBRARY.with_name(name))
    vendors = {vendor: opp / vendor for vendor, _ in sources}
    _put_first(opp / "config.ini", list(vendors))
    return vendors


def _build_library(
    vendor: str,
    name: str,
    sources: Iterable[tuple[Settings, str]],
    build_folder: Path,
    toolchain: Toolchain,
) -> Path:
    cxx = compiler.find_compiler()
    file = NinjaFile(build_folder, [*cxx.command, *toolchain.compile_flags])
    for kernels, source in sources:
        includes = [f"-I{kernels.root / folder}" for folder in kernels.include_dirs]
        path, own = _as_cpp(kernels.root / source, build_folder, toolchain)
        file.compile(path, [*own, *includes, *cxx.compile_flags])
    library = build_folder / name
    file.link(
        library.as_posix(),
        [*cxx.command, "-shared", "-fPIC", f"-Wl,-soname,{name}"],
        [*toolchain.link_flags, *cxx.link_flags],
    )
    try:
        run_ninja(file.write(), build_folder, is_captured=True)
    except BuildError as error:
        raise BuildError(f"the simulated kernels of vendor {vendor!r}: {error}") from None
    return library


def _as_cpp(source: Path, build_folder: Path, toolchain: Toolchain) -> tuple[str, tuple[str, ...]]:
    """Return a source of C++ and its flags: for AscendC a copy, which calls the simulator."""
    text = source.read_text(encoding="utf-8")
    launched = _LAUNCH.sub(
        r'custom_pypto_simulator::Direct(\g<kernel>, "\g<kernel>", \g<how>)', text
    )
    if launched == text:
        return str(source), toolchain.aclnn_flags
    # Below its whole path: two sources may have one name.
    copy = build_folder / "translated" / source.relative_to(source.anchor)
    written = f'#line 1 "{source}"\n{launched}'
    if not copy.exists() or copy.read_text(encoding="utf-8") != written:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(written, encoding="utf-8")
    # It includes what is beside the source. The Ascend compiler exports functions by default.
    return str(copy), (f"-I{source.parent}", "-fvisibility=default")


def _put_first(config: Path, vendors: Sequence[str]) -> None:
    """Give `vendors` priority over those that the opp tree has already."""
    text = config.read_text(encoding="utf-8").strip() if config.exists() else _PRIORITY
    if not text.startswith(_PRIORITY):
        raise BuildError(f"{config} must start with {_PRIORITY!r}, got {text!r}")
    others = [each for each in text[len(_PRIORITY) :].split(",") if each and each not in vendors]
    config.write_text(_PRIORITY + ",".join([*vendors, *others]) + "\n", encoding="utf-8")
