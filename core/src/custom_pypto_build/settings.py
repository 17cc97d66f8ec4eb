"""What a plugin's pyproject.toml says, checked."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from custom_pypto_discovery import manifest
from custom_pypto_discovery.candidates import GROUP

from .errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "tool.custom-pypto"
KEYS = ("sources", "include-dirs", "cxx-flags", "opp", "requires-ops", "per-file")
PER_FILE_KEYS = ("files", "machines", "cxx-flags")
MACHINES = ("x86_64", "aarch64", "loongarch64", "ppc64le", "riscv64", "s390x")
SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
_OTHER_NAMES = {"arm64": "aarch64", "amd64": "x86_64", "x64": "x86_64", "x86-64": "x86_64"}


@dataclass(frozen=True)
class Source:
    """A file to compile: relative path, its own flags, the machines it is for (None: all)."""

    path: str
    flags: tuple[str, ...]
    machines: frozenset[str] | None

    def is_for(self, machine: str) -> bool:
        """Whether it is compiled for `machine`."""
        return self.machines is None or machine in self.machines


@dataclass(frozen=True)
class Settings:
    """A plugin as its pyproject.toml describes it; paths are relative to `root`, with ``/``."""

    root: Path
    name: str
    package: str
    sources: tuple[Source, ...]
    include_dirs: tuple[str, ...]
    flags: tuple[str, ...]
    opp: str | None
    requires_ops: tuple[str, ...]
    backend_files: tuple[str, ...]


def read_settings(root: Path) -> Settings:
    """The settings in ``root / "pyproject.toml"``.

    Raises:
        BuildError: a key is missing, unknown or has a wrong value, or a file it names is not there.
    """
    document = _read_toml(root / "pyproject.toml")
    name, package = _entry_point(document)
    table = _Table(_subtable(document, "tool").get("custom-pypto"), TABLE, KEYS)
    sources = _sources(root, table)
    return Settings(
        root=root,
        name=name,
        package=package,
        sources=sources,
        include_dirs=tuple(
            _folder(root, table, "include-dirs", d) for d in table.strings("include-dirs")
        ),
        flags=_flags(table),
        opp=_opp(root, table),
        requires_ops=_requires_ops(table),
        backend_files=_backend_files(root, _subtable(document, "build-system")),
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BuildError(f"pyproject.toml: {error}") from None


def _subtable(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    table = document
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {inner!r}")
        table = inner
    return table


def _entry_point(document: Mapping[str, Any]) -> tuple[str, str]:
    """The plugin's name and top-level package."""
    where = f'[project.entry-points."{GROUP}"]'
    groups = _subtable(document, "project", "entry-points")
    entries = _subtable(groups, GROUP)
    if len(entries) != 1:
        others = [group for group in groups if group != GROUP]
        close = difflib.get_close_matches(GROUP, others, n=1)
        raise BuildError(
            f"pyproject.toml: {where} must have exactly one entry, the plugin's name and its"
            f" module, got {len(entries)}; write"
            f' {where}  my_op = "my_package"'
            + (f"; did you mean that group by {close[0]!r}?" if close else "")
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
    return name, module.split(".")[0]


def _sources(root: Path, table: _Table) -> tuple[Source, ...]:
    key = f"{TABLE}.sources"
    if not table.has("sources"):
        raise BuildError(
            f"pyproject.toml: {key} is missing; name the C++ files to compile, such as"
            ' sources = ["csrc/**/*.cpp"]'
        )
    patterns = table.strings("sources")
    if not patterns:
        raise BuildError(f"pyproject.toml: {key} is empty; name the C++ files to compile")
    paths = sorted({path for pattern in patterns for path in _matches(root, key, pattern)})
    per_file = [_PerFile(root, entry) for entry in table.tables("per-file", PER_FILE_KEYS)]
    for entry in per_file:
        entry.check_used(paths)
    return tuple(
        _source(path, [entry for entry in per_file if entry.holds(path)]) for path in paths
    )


def _source(path: str, entries: Sequence[_PerFile]) -> Source:
    machines: frozenset[str] | None = None
    for entry in entries:
        if entry.machines is not None:
            machines = entry.machines if machines is None else machines & entry.machines
    return Source(path, tuple(flag for entry in entries for flag in entry.flags), machines)


def _matches(root: Path, key: str, pattern: str) -> list[str]:
    paths = _glob(root, key, pattern)
    if not paths:
        folder = PurePosixPath(pattern).parent
        raise BuildError(
            f"pyproject.toml: {key}: {pattern!r} matches no file in {root}"
            + _suggestion(pattern, _files_like(root, folder))
        )
    for path in paths:
        if PurePosixPath(path).suffix not in SOURCE_SUFFIXES:
            raise BuildError(
                f"pyproject.toml: {key}: {pattern!r} matches {path!r}; a source ends in"
                f" {', '.join(SOURCE_SUFFIXES)}; headers are found through"
                f" {TABLE}.include-dirs"
            )
    return paths


def _glob(root: Path, key: str, pattern: str) -> list[str]:
    _check_inside(key, pattern)
    try:
        return [p.relative_to(root).as_posix() for p in root.glob(pattern) if p.is_file()]
    except ValueError as error:
        raise BuildError(f"pyproject.toml: {key}: {pattern!r}: {error}") from None


def _files_like(root: Path, folder: PurePosixPath) -> list[str]:
    inside = root / folder
    if any(c in str(folder) for c in "*?["):
        return []
    return [p.relative_to(root).as_posix() for p in inside.glob("*")] if inside.is_dir() else []


def _check_inside(key: str, path: str) -> None:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise BuildError(
            f"pyproject.toml: {key}: {path!r} must be a path below the folder of pyproject.toml, so"
            " that a source distribution can hold it"
        )


def _folder(root: Path, table: _Table, name: str, path: str) -> str:
    key = table.key(name)
    _check_inside(key, path)
    if not (root / path).is_dir():
        folders = [p.name for p in root.iterdir() if p.is_dir()]
        raise BuildError(
            f"pyproject.toml: {key}: there is no folder {path!r} in {root}"
            + _suggestion(path, folders)
        )
    return PurePosixPath(path).as_posix()


def _flags(table: _Table) -> tuple[str, ...]:
    flags = table.strings("cxx-flags")
    for flag in flags:
        if "TORCH_TARGET_VERSION" in flag:
            raise BuildError(
                f"pyproject.toml: {table.key('cxx-flags')}: {flag!r} cannot be set: every plugin is"
                " compiled for the same stable ABI, so that one wheel serves every torch"
            )
    return tuple(flags)


def _opp(root: Path, table: _Table) -> str | None:
    if not table.has("opp"):
        return None
    path = _folder(root, table, "opp", table.string("opp"))
    if not any(p.is_file() for p in (root / path).rglob("*")):
        raise BuildError(f"pyproject.toml: {table.key('opp')}: the folder {path!r} holds no file")
    return path


def _requires_ops(table: _Table) -> tuple[str, ...]:
    ops = table.strings("requires-ops")
    for op in ops:
        if not manifest.is_op_name(op):
            raise BuildError(
                f"pyproject.toml: {table.key('requires-ops')}: {op!r} must be the name of an op as"
                " it stands after torch.ops.custom_pypto, such as 'foo' or 'foo.overload'"
            )
    return tuple(ops)


def _backend_files(root: Path, build_system: Mapping[str, Any]) -> tuple[str, ...]:
    """The backend's module when it is in the project itself (``backend-path``)."""
    module = str(build_system.get("build-backend", "")).split(":")[0].replace(".", "/")
    candidates = [
        PurePosixPath(folder, f"{module}.py") for folder in build_system.get("backend-path", [])
    ]
    return tuple(str(path) for path in candidates if (root / path).is_file())


def _suggestion(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class _PerFile:
    """One ``[[tool.custom-pypto.per-file]]``."""

    def __init__(self, root: Path, table: _Table) -> None:
        if not table.has("files"):
            raise BuildError(
                f"pyproject.toml: {table.key('files')} is missing; name the sources that this"
                " table is for"
            )
        self._key = table.key("files")
        self._matches = {p: set(_glob(root, self._key, p)) for p in table.strings("files")}
        self.flags = _flags(table)
        self.machines = self._machines(table)

    def holds(self, path: str) -> bool:
        return any(path in files for files in self._matches.values())

    def check_used(self, sources: Sequence[str]) -> None:
        for pattern, files in self._matches.items():
            if files.isdisjoint(sources):
                raise BuildError(
                    f"pyproject.toml: {self._key}: {pattern!r} matches none of the sources"
                    + _suggestion(pattern, sources)
                )

    @staticmethod
    def _machines(table: _Table) -> frozenset[str] | None:
        if not table.has("machines"):
            return None
        machines = table.strings("machines")
        for machine in machines:
            if machine not in MACHINES:
                other = _OTHER_NAMES.get(machine.lower())
                hint = f"; did you mean {other!r}?" if other else _suggestion(machine, MACHINES)
                raise BuildError(
                    f"pyproject.toml: {table.key('machines')}: unknown machine"
                    f" {machine!r}; allowed: {', '.join(MACHINES)}{hint}"
                )
        if not machines:
            raise BuildError(
                f"pyproject.toml: {table.key('machines')} is empty, so these files would never be"
                f" compiled; allowed: {', '.join(MACHINES)}"
            )
        return frozenset(machines)


class _Table:
    """A table of pyproject.toml whose keys and types are checked."""

    def __init__(self, values: object, name: str, allowed: Sequence[str]) -> None:
        if values is None:
            raise BuildError(
                f"pyproject.toml: the table [{name}] is missing; it describes the plugin's library,"
                ' at least sources = ["csrc/**/*.cpp"]'
            )
        if not isinstance(values, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {values!r}")
        for key in values:
            if key not in allowed:
                raise BuildError(
                    f"pyproject.toml: [{name}] has no key {key!r}; allowed: {', '.join(allowed)}"
                    + _suggestion(key, allowed)
                )
        self._values: dict[str, Any] = values
        self._name = name

    def key(self, name: str) -> str:
        return f"{self._name}.{name}"

    def has(self, name: str) -> bool:
        return name in self._values

    def string(self, name: str) -> str:
        value = self._values[name]
        if not isinstance(value, str) or not value:
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be a non-empty string, got {value!r}"
            )
        return value

    def strings(self, name: str) -> list[str]:
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be a list of non-empty strings,"
                f" got {value!r}"
            )
        return value

    def tables(self, name: str, allowed: Sequence[str]) -> list[_Table]:
        value = self._values.get(name, [])
        if not isinstance(value, list):
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be an array of tables, written"
                f" [[{self.key(name)}]], got {value!r}"
            )
        return [_Table(v, f"{self.key(name)}[{i}]", allowed) for i, v in enumerate(value)]
