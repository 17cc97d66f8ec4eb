"""The settings of a plugin in its pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from custom_pypto_contract import ops_file, tables
from custom_pypto_contract.errors import ContractError, did_you_mean
from custom_pypto_contract.manifest import ASCENDC_SUFFIX, GROUP, PLUGIN_NAME
from custom_pypto_contract.op_name import OP_NAME
from custom_pypto_contract.tables import TableError, Validator, record, table_of, text_matching

from .errors import BuildError

TABLE = "tool.custom-pypto"
SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
_LONGEST_NAME = 255


def _list_of(validate: Validator) -> Validator:
    return tables.list_of(validate, "a list of non-empty strings")


_STRINGS = _list_of(tables.filled_text)
_FLAGS = _list_of(
    text_matching(
        "(?!.*TORCH_TARGET_VERSION).+",
        "a flag that leaves TORCH_TARGET_VERSION as it is: every plugin is compiled for the same"
        " stable ABI, so that one wheel serves every torch",
    )
)
_ISA = {"sources": _STRINGS, "int8-sources": _STRINGS, "cxx-flags": _FLAGS}
KEYS = {
    "sources": _STRINGS,
    "include-dirs": _STRINGS,
    "include-packages": _list_of(
        text_matching(
            r"[^\W\d]\w*",
            "the name of a top-level package of Python, such as 'custom_pypto_blocks'",
        )
    ),
    "cxx-flags": _FLAGS,
    "opp": tables.filled_text,
    "requires-ops": _list_of(
        text_matching(
            OP_NAME.pattern,
            "the name of an op as it stands after torch.ops.custom_pypto, such as 'foo' or"
            " 'foo.overload'",
        )
    ),
    "isa": record(_ISA),
    "ascendc": _STRINGS,
    "simulated-kernels": table_of(_STRINGS, of_identifiers=True),
}
"""The keys of ``[tool.custom-pypto]``, and what each takes."""


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
        isa_flags=tuple(table.get("isa", {}).get("cxx-flags", ())),
        ascendc_sources=ascendc_sources,
        include_dirs=tuple(
            _folder(root, "include-dirs", path) for path in table.get("include-dirs", [])
        ),
        include_packages=tuple(table.get("include-packages", ())),
        flags=tuple(table.get("cxx-flags", ())),
        opp=_opp(root, table),
        requires_ops=tuple(table.get("requires-ops", ())),
        simulated_kernels={
            vendor: tuple(_match_sources(root, f"{TABLE}.simulated-kernels.{vendor}", files))
            for vendor, files in table.get("simulated-kernels", {}).items()
        },
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
    if re.fullmatch(PLUGIN_NAME, name) is None:
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
    paths = _match_sources(root, key, table["sources"])
    isa = table.get("isa", {})
    isa_key = f"{TABLE}.isa"
    isa_paths: list[str] = []
    int8_paths: list[str] = []
    if "isa" in table:
        if "int8-sources" in isa:
            int8_paths = _match_sources(root, f"{isa_key}.int8-sources", isa["int8-sources"])
        if "sources" in isa or not int8_paths:
            isa_paths = _match_sources(root, f"{isa_key}.sources", isa.get("sources", []))
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
    paths = _match_sources(root, key, table["ascendc"])
    for path in compiled & {*paths}:
        raise BuildError(
            f"pyproject.toml: {TABLE}.sources and {key} both match {path!r}: the"
            " one is compiled by the C++ compiler, the other by CANN's; narrow the patterns"
        )
    return tuple(paths)


def _folder(root: Path, name: str, path: str) -> str:
    key = f"{TABLE}.{name}"
    _check_inside(key, path)
    if not (root / path).is_dir():
        folders = [p.name for p in root.iterdir() if p.is_dir()]
        raise BuildError(
            f"pyproject.toml: {key}: there is no folder {path!r} in {root}"
            + did_you_mean(path, folders)
        )
    return PurePosixPath(path).as_posix()


def _opp(root: Path, table: Mapping[str, Any]) -> str | None:
    if "opp" not in table:
        return None
    path = _folder(root, "opp", table["opp"])
    if not any(p.is_file() for p in (root / path).rglob("*")):
        raise BuildError(f"pyproject.toml: {TABLE}.opp: the folder {path!r} holds no file")
    return path


def _match_sources(root: Path, key: str, patterns: Sequence[str]) -> list[str]:
    """The C++ files below `root` that `patterns` match, relative to it, each once; sorted.

    Raises:
        BuildError: there is no pattern, one matches nothing, or what it matches is no source. The
            text names `key`, where the patterns stand.
    """
    if not patterns:
        raise BuildError(f"pyproject.toml: {key} is empty; name the C++ files to compile")
    return sorted({path for pattern in patterns for path in _matched(root, key, pattern)})


def _glob(root: Path, key: str, pattern: str) -> list[str]:
    """The files below `root` that `pattern` matches, relative to it.

    Raises:
        BuildError: it is no pattern, or one of files elsewhere.
    """
    _check_inside(key, pattern)
    try:
        return [p.relative_to(root).as_posix() for p in root.glob(pattern) if p.is_file()]
    except ValueError as error:
        raise BuildError(f"pyproject.toml: {key}: {pattern!r}: {error}") from None


def _check_inside(key: str, path: str) -> None:
    """Refuse a path or pattern that does not stay below the folder of pyproject.toml.

    Raises:
        BuildError: always then.
    """
    parts = PurePosixPath(path).parts
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise BuildError(f"pyproject.toml: {key}: no file has a name as long as in {path!r}")
    if not parts or path.startswith("/") or ".." in parts:
        raise BuildError(
            f"pyproject.toml: {key}: {path!r} must be a path below the folder of pyproject.toml, so"
            " that a source distribution can hold it"
        )


def _matched(root: Path, key: str, pattern: str) -> list[str]:
    paths = _glob(root, key, pattern)
    if not paths:
        folder = PurePosixPath(pattern).parent
        raise BuildError(
            f"pyproject.toml: {key}: {pattern!r} matches no file in {root}"
            + did_you_mean(pattern, _files_like(root, folder))
        )
    for path in paths:
        if PurePosixPath(path).suffix not in SOURCE_SUFFIXES:
            raise BuildError(
                f"pyproject.toml: {key}: {pattern!r} matches {path!r}; a source ends in"
                f" {', '.join(SOURCE_SUFFIXES)}; headers are found through"
                " tool.custom-pypto.include-dirs"
            )
    return paths


def _files_like(root: Path, folder: PurePosixPath) -> list[str]:
    inside = root / folder
    if any(c in str(folder) for c in "*?["):
        return []
    return [p.relative_to(root).as_posix() for p in inside.glob("*")] if inside.is_dir() else []


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
