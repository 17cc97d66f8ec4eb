"""The settings of a plugin in its pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from custom_pypto_contract import manifest, ops_file, tables
from custom_pypto_contract.errors import ContractError, did_you_mean
from custom_pypto_contract.manifest import ASCENDC_SUFFIX, GROUP
from custom_pypto_contract.tables import TableError, record, table_of

from . import patterns
from .errors import BuildError

TABLE = "tool.custom-pypto"
_STRINGS = tables.list_of(tables.filled_text, "a list of non-empty strings")
_ISA = dict.fromkeys(("sources", "int8-sources", "cxx-flags"), _STRINGS)
KEYS = {
    "sources": _STRINGS,
    "include-dirs": _STRINGS,
    "include-packages": _STRINGS,
    "cxx-flags": _STRINGS,
    "opp": tables.filled_text,
    "requires-ops": _STRINGS,
    "isa": record(_ISA),
    "ascendc": _STRINGS,
    "simulated-kernels": table_of(_STRINGS),
}
"""The keys of ``[tool.custom-pypto]``, and what each takes."""
_VENDOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class IsaSource:
    """A file that is compiled for each instruction set; with `int8` also for those of int8."""

    path: str
    int8: bool


@dataclass(frozen=True)
class Settings:
    """A plugin as its pyproject.toml describes it; paths are relative to `root`, with ``/``.

    `isa_sources` are compiled once for each instruction set, `sources` once, `ascendc_sources` by
    the Ascend compiler, where there is one. `simulated_kernels` are NPU kernels for tests: the
    sources of each vendor's library, in the order of pyproject.toml. `opp` is where the real NPU
    kernels are. A folder with simulated kernels alone has no `name`, `module` and sources.
    """

    root: Path
    name: str
    module: str
    sources: tuple[str, ...]
    isa_sources: tuple[IsaSource, ...]
    isa_flags: tuple[str, ...]
    ascendc_sources: tuple[str, ...]
    include_dirs: tuple[str, ...]
    include_packages: tuple[str, ...]
    flags: tuple[str, ...]
    opp: str | None
    requires_ops: tuple[str, ...]
    simulated_kernels: Mapping[str, tuple[str, ...]]

    @property
    def has_library(self) -> bool:
        """Whether there is anything to compile: kernels may all be Python."""
        return bool(self.sources)

    @property
    def has_int8_kernels(self) -> bool:
        """Whether a source is compiled for the instruction sets of int8 kernels too."""
        return any(source.int8 for source in self.isa_sources)

    @property
    def simulated_sources(self) -> frozenset[str]:
        """The sources of the simulated kernels of every vendor."""
        return frozenset(file for files in self.simulated_kernels.values() for file in files)

    @property
    def package(self) -> str:
        """The top-level package of `module`, which the entry point names."""
        return self.module.split(".")[0]


def read_settings(root: Path) -> Settings:
    """The settings of the plugin in ``root / "pyproject.toml"``.

    Raises:
        BuildError: a key is missing, unknown or has a wrong value, or a file it names is not there.
    """
    settings = _read(root, is_plugin=True)
    for path in (*settings.sources, *(each.path for each in settings.isa_sources)):
        if path in settings.simulated_sources:
            raise BuildError(
                f"pyproject.toml: {TABLE}.sources and {TABLE}.simulated-kernels both match"
                f" {path!r}: the one is what the wheel is built from, the other is for tests"
                " alone; narrow the patterns"
            )
    return settings


def read_simulated_kernels(root: Path) -> Settings:
    """The settings in ``root / "pyproject.toml"``, which may be of simulated kernels alone.

    The sources of a plugin are not read.

    Raises:
        BuildError: there are no simulated kernels, or a key has a wrong value.
    """
    settings = _read(root, is_plugin=False)
    if not settings.simulated_kernels:
        raise BuildError(
            f"pyproject.toml: {TABLE}.simulated-kernels names no simulated kernels; name the"
            ' C++ files of each vendor, such as custom = ["tests/npu/custom.cpp"]'
        )
    return settings


def _read(root: Path, *, is_plugin: bool) -> Settings:
    document = read_toml(root / "pyproject.toml")
    name = module = ""
    if is_plugin:
        name, module = _entry_point(document)
        if "custom-pypto" not in subtable(document, "tool"):
            raise BuildError(
                f"pyproject.toml: the table [{TABLE}] is missing; it describes the plugin's"
                ' library, such as sources = ["csrc/**/*.cpp"], and is empty where all kernels are'
                " Python"
            )
    table = _table(document)
    sources, isa_sources = _sources(root, table) if is_plugin else ((), ())
    ascendc_sources = _ascendc_sources(root, table, {*sources})
    if ascendc_sources and not is_plugin:
        name, module = _entry_point(document)
    return Settings(
        root=root,
        name=name,
        module=module,
        sources=sources,
        isa_sources=isa_sources,
        isa_flags=_flags(f"{TABLE}.isa", table.get("isa", {})),
        ascendc_sources=ascendc_sources,
        include_dirs=tuple(
            _folder(root, "include-dirs", path) for path in table.get("include-dirs", [])
        ),
        include_packages=_include_packages(table),
        flags=_flags(TABLE, table),
        opp=_opp(root, table),
        requires_ops=_requires_ops(table),
        simulated_kernels=_simulated_kernels(root, table),
    )


def launchers_name(plugin: str) -> str:
    """Return the first part of the names of libraries with a plugin's AscendC kernels."""
    return f"libcustom_pypto_{plugin}{ASCENDC_SUFFIX}"


def _table(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``[tool.custom-pypto]``, which may be missing, with its keys checked."""
    table = subtable(document, "tool").get("custom-pypto", {})
    try:
        record(KEYS)(TABLE, table)
    except TableError as error:
        raise BuildError(f"pyproject.toml: {error}") from None
    return cast("Mapping[str, Any]", table)


def _entry_point(document: Mapping[str, Any]) -> tuple[str, str]:
    """The plugin's name and module."""
    where = f'[project.entry-points."{GROUP}"]'
    groups = subtable(document, "project", "entry-points")
    entries = subtable(groups, GROUP)
    if len(entries) != 1:
        others = [group for group in groups if group != GROUP]
        raise BuildError(
            f"pyproject.toml: {where} must have exactly one entry, the plugin's name and its"
            f" module, got {len(entries)}; write"
            f' {where}  my_op = "my_package"' + did_you_mean(GROUP, others)
        )
    [(name, module)] = entries.items()
    if not manifest.is_plugin_name(name):
        raise BuildError(
            f"pyproject.toml: {where}: the plugin's name must be lower case letters, digits and"
            f" '_', a letter first, got {name!r}"
        )
    if not isinstance(module, str) or not all(p.isidentifier() for p in module.split(".")):
        raise BuildError(
            f"pyproject.toml: {where}: {name} must name a module, such as 'my_package', got"
            f" {module!r}"
        )
    return name, module


def _sources(root: Path, table: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[IsaSource, ...]]:
    """Return the sources compiled once and those compiled for each instruction set.

    Nothing for a plugin whose kernels are all Python.
    """
    key = f"{TABLE}.sources"
    if "sources" not in table:
        for other in ("isa", "ascendc", "cxx-flags", "include-dirs"):
            if other in table:
                raise BuildError(
                    f"pyproject.toml: {key} is missing, but {TABLE}.{other} is there; name the"
                    ' C++ files to compile, such as sources = ["csrc/**/*.cpp"]'
                )
        return (), ()
    paths = patterns.sources(root, key, table["sources"])
    isa = table.get("isa", {})
    isa_key = f"{TABLE}.isa"
    isa_paths: list[str] = []
    int8_paths: list[str] = []
    if "isa" in table:
        if "int8-sources" in isa:
            int8_paths = patterns.sources(root, f"{isa_key}.int8-sources", isa["int8-sources"])
        if "sources" in isa or not int8_paths:
            isa_paths = patterns.sources(root, f"{isa_key}.sources", isa.get("sources", []))
        isa_paths = sorted({*isa_paths, *int8_paths})
        if set(paths) <= set(isa_paths):
            raise BuildError(
                f"pyproject.toml: {isa_key}.sources matches every one of the sources; at least"
                " one is compiled once: that with CUSTOM_PYPTO_PLUGIN"
            )
    return (
        tuple(path for path in paths if path not in isa_paths),
        tuple(IsaSource(path, path in int8_paths) for path in isa_paths),
    )


def _ascendc_sources(root: Path, table: Mapping[str, Any], compiled: Set[str]) -> tuple[str, ...]:
    if "ascendc" not in table:
        return ()
    key = f"{TABLE}.ascendc"
    paths = patterns.sources(root, key, table["ascendc"])
    for path in compiled & {*paths}:
        raise BuildError(
            f"pyproject.toml: {TABLE}.sources and {key} both match {path!r}: the"
            " one is compiled by the C++ compiler, the other by CANN's; narrow the patterns"
        )
    return tuple(paths)


def _simulated_kernels(root: Path, table: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    key = f"{TABLE}.simulated-kernels"
    sources = {}
    for vendor, files in table.get("simulated-kernels", {}).items():
        if _VENDOR.fullmatch(vendor) is None:
            raise BuildError(
                f"pyproject.toml: {key}: the vendor {vendor!r} must be"
                " letters, digits, '_' and '-', beginning with a letter or digit: it names the"
                " folder vendors/<vendor> of an opp package"
            )
        sources[vendor] = tuple(patterns.sources(root, f"{key}.{vendor}", files))
    return sources


def _include_packages(table: Mapping[str, Any]) -> tuple[str, ...]:
    names = tuple(table.get("include-packages", ()))
    for name in names:
        if not name.isidentifier():
            raise BuildError(
                f"pyproject.toml: {TABLE}.include-packages: {name!r} is not the name of a top-level"
                ' package of Python, such as "custom_pypto_blocks"'
            )
    return names


def _folder(root: Path, name: str, path: str) -> str:
    key = f"{TABLE}.{name}"
    patterns.check_inside(key, path)
    if not (root / path).is_dir():
        folders = [p.name for p in root.iterdir() if p.is_dir()]
        raise BuildError(
            f"pyproject.toml: {key}: there is no folder {path!r} in {root}"
            + did_you_mean(path, folders)
        )
    return PurePosixPath(path).as_posix()


def _flags(key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    flags = table.get("cxx-flags", [])
    for flag in flags:
        if "TORCH_TARGET_VERSION" in flag:
            raise BuildError(
                f"pyproject.toml: {key}.cxx-flags: {flag!r} cannot be set: every plugin is"
                " compiled for the same stable ABI, so that one wheel serves every torch"
            )
    return tuple(flags)


def _opp(root: Path, table: Mapping[str, Any]) -> str | None:
    if "opp" not in table:
        return None
    path = _folder(root, "opp", table["opp"])
    if not any(p.is_file() for p in (root / path).rglob("*")):
        raise BuildError(f"pyproject.toml: {TABLE}.opp: the folder {path!r} holds no file")
    return path


def _requires_ops(table: Mapping[str, Any]) -> tuple[str, ...]:
    ops = table.get("requires-ops", [])
    for op in ops:
        if not manifest.is_op_name(op):
            raise BuildError(
                f"pyproject.toml: {TABLE}.requires-ops: {op!r} must be the name of an op as"
                " it stands after torch.ops.custom_pypto, such as 'foo' or 'foo.overload'"
            )
    return tuple(ops)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the document in the file `path`.

    Raises:
        BuildError: it does not exist, cannot be read, or is not TOML.
    """
    try:
        return ops_file.read_toml(path)
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except ContractError as error:
        raise BuildError(str(error)) from None


def subtable(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the table that these names lead to, one inside the other; empty where there is none.

    Raises:
        BuildError: one of them names something else.
    """
    table = document
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {inner!r}")
        table = inner
    return table
