"""The settings of a plugin in its pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from custom_pypto_contract import ops_file, tables
from custom_pypto_contract.errors import ContractError, did_you_mean
from custom_pypto_contract.manifest import ASCENDC_SUFFIX, GROUP, PLUGIN_NAME
from custom_pypto_contract.op_name import OP_NAME
from custom_pypto_contract.tables import TableError, list_of, record, table_of, text_matching

from .errors import BuildError

TABLE = "tool.custom-pypto"
SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
ISA_KINDS = ("bf16", "int8")  # Sources of such products have further instruction sets.
_ISA = {"": "sources", **{kind: f"{kind}-sources" for kind in ISA_KINDS}}
_LONGEST_NAME = 255
_STRINGS = list_of(tables.filled_text, "a list of non-empty strings")
_SOURCES = list_of(
    tables.filled_text, "a list of C++ files, such as ['csrc/*.cpp']", is_filled=True
)
_FLAGS = list_of(
    text_matching(
        "(?!.*TORCH_TARGET_VERSION).+",
        "a flag that leaves TORCH_TARGET_VERSION as it is: every plugin is compiled for the same"
        " stable ABI, so that one wheel serves every torch",
    )
)
_PACKAGES = list_of(
    text_matching(
        r"[^\W\d]\w*", "the name of a top-level package of Python, such as 'custom_pypto_blocks'"
    )
)
_OPS = list_of(
    text_matching(
        OP_NAME.pattern,
        "the name of an op as it stands after torch.ops.custom_pypto, such as 'foo' or"
        " 'foo.overload'",
    )
)
_VENDOR = text_matching(
    "[A-Za-z0-9][A-Za-z0-9_-]*",
    "a vendor's name of letters, digits, '_' and '-', beginning with a letter or digit",
)


def _simulated_kernels(path: str, value: Any) -> None:
    table_of(_SOURCES)(path, value)
    for vendor in value:
        _VENDOR(f"each key of {path}", vendor)


KEYS = {
    "sources": _SOURCES,
    "include-dirs": _STRINGS,
    "include-packages": _PACKAGES,
    "cxx-flags": _FLAGS,
    "opp": tables.filled_text,
    "requires-ops": _OPS,
    "isa": record({**dict.fromkeys(_ISA.values(), _SOURCES), "cxx-flags": _FLAGS}),
    "ascendc": _SOURCES,
    "simulated-kernels": _simulated_kernels,
}
"""The keys of ``[tool.custom-pypto]``, and what each takes."""


@dataclass(frozen=True)
class Settings:
    """A plugin as its pyproject.toml describes it; paths are relative to `root`, with ``/``.

    `isa_sources` are compiled once for each instruction set, those of their kinds among them,
    `sources` once, `ascendc_sources` by the Ascend compiler, where there is one.
    `simulated_kernels` are NPU kernels for tests: the sources of each vendor's library, in the
    order of pyproject.toml. `opp` is where the real NPU kernels are. A plugin whose kernels are all
    Python has no `sources`, a folder with simulated kernels alone neither these nor `name` and
    `module`.
    """

    root: Path
    name: str
    module: str
    sources: tuple[str, ...]
    isa_sources: Mapping[str, Sequence[str]]
    isa_flags: tuple[str, ...]
    ascendc_sources: tuple[str, ...]
    include_dirs: tuple[str, ...]
    include_packages: tuple[str, ...]
    flags: tuple[str, ...]
    opp: str | None
    requires_ops: tuple[str, ...]
    simulated_kernels: Mapping[str, tuple[str, ...]]

    @property
    def isa_kinds(self) -> list[str]:
        """The kinds of any of `isa_sources`."""
        named = set(chain.from_iterable(self.isa_sources.values()))
        return [kind for kind in ISA_KINDS if kind in named]

    @property
    def simulated_sources(self) -> frozenset[str]:
        """The sources of the simulated kernels of every vendor."""
        return frozenset(file for files in self.simulated_kernels.values() for file in files)

    @property
    def package(self) -> str:
        """The top-level package of `module`, which the entry point names."""
        return self.module.split(".")[0]


def read_settings(root: Path, *, is_plugin: bool = True) -> Settings:
    """The settings in ``root / "pyproject.toml"``.

    A folder that `is_plugin` has a plugin. Another one may have simulated kernels alone, and the
    sources of a plugin are not read.

    Raises:
        BuildError: a key is missing, unknown or has a wrong value, or a file it names is not there.
    """
    document = read_toml(root / "pyproject.toml")
    try:
        settings = _settings(root, document, is_plugin=is_plugin)
    # A `TableError` is a ValueError.
    except (OSError, ValueError) as error:
        raise BuildError(f"pyproject.toml: {error}") from None
    for path in (*settings.sources, *settings.isa_sources):
        if path in settings.simulated_sources:
            raise BuildError(
                f"pyproject.toml: {TABLE}.sources and {TABLE}.simulated-kernels both match"
                f" {path!r}: the one is what the wheel is built from, the other is for tests"
                " alone; narrow the patterns"
            )
    return settings


def _settings(root: Path, document: Mapping[str, Any], *, is_plugin: bool) -> Settings:
    tool = subtable(document, "tool")
    if is_plugin and "custom-pypto" not in tool:
        raise TableError(
            f"the table [{TABLE}]",
            'is missing; it describes the plugin\'s library, such as sources = ["csrc/**/*.cpp"],'
            " and is empty where all kernels are Python",
        )
    table = tool.get("custom-pypto", {})
    record(KEYS)(TABLE, table)
    sources, isa_sources = _sources(root, table) if is_plugin else ((), {})
    ascendc_sources = _match(root, "ascendc", table.get("ascendc", ()))
    for path in {*sources} & {*ascendc_sources}:
        raise TableError(
            f"{TABLE}.sources and {TABLE}.ascendc",
            f"both match {path!r}: the one is compiled by the C++ compiler, the other by CANN's;"
            " narrow the patterns",
        )
    name, module = _entry_point(document) if is_plugin or ascendc_sources else ("", "")
    opp = _folder(root, "opp", table["opp"]) if "opp" in table else None
    if opp is not None and not any(p.is_file() for p in (root / opp).rglob("*")):
        raise TableError(f"{TABLE}.opp:", f"the folder {opp!r} holds no file")
    return Settings(
        root=root,
        name=name,
        module=module,
        sources=sources,
        isa_sources=isa_sources,
        isa_flags=tuple(table.get("isa", {}).get("cxx-flags", ())),
        ascendc_sources=ascendc_sources,
        include_dirs=tuple(
            _folder(root, "include-dirs", path) for path in table.get("include-dirs", ())
        ),
        include_packages=tuple(table.get("include-packages", ())),
        flags=tuple(table.get("cxx-flags", ())),
        opp=opp,
        requires_ops=tuple(table.get("requires-ops", ())),
        simulated_kernels={
            vendor: _match(root, f"simulated-kernels.{vendor}", files)
            for vendor, files in table.get("simulated-kernels", {}).items()
        },
    )


def ascendc_stem(plugin: str) -> str:
    """Return the first part of the names of libraries with a plugin's AscendC kernels."""
    return f"libcustom_pypto_{plugin}{ASCENDC_SUFFIX}"


def _entry_point(document: Mapping[str, Any]) -> tuple[str, str]:
    where = f'[project.entry-points."{GROUP}"]'
    groups = subtable(document, "project", "entry-points")
    entries = subtable(groups, GROUP)
    if len(entries) != 1:
        others = [group for group in groups if group != GROUP]
        raise TableError(
            where,
            "must have exactly one entry, the plugin's name and its module, got"
            f' {len(entries)}; write {where}  my_op = "my_package"{did_you_mean(GROUP, others)}',
        )
    [(name, module)] = entries.items()
    text_matching(PLUGIN_NAME, "lower case letters, digits and '_', a letter first")(
        f"{where}: the plugin's name", name
    )
    text_matching(r"[^\W\d]\w*(\.[^\W\d]\w*)*", "the name of a module, such as 'my_package'")(
        f"{where}: {name}", module
    )
    return name, module


def _sources(root: Path, table: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """Return the sources compiled once and those compiled for each instruction set."""
    if "sources" not in table:
        for other in ("isa", "ascendc", "cxx-flags", "include-dirs"):
            if other in table:
                raise TableError(
                    f"{TABLE}.sources",
                    f"is missing, but {TABLE}.{other} is there; name the C++ files to compile, such"
                    ' as sources = ["csrc/**/*.cpp"]',
                )
        return (), {}
    paths = _match(root, "sources", table["sources"])
    isa = table.get("isa", {})
    of_kind = {kind: _match(root, f"isa.{key}", isa.get(key, ())) for kind, key in _ISA.items()}
    isa_paths = sorted(set(chain.from_iterable(of_kind.values())))
    if "isa" in table and not isa_paths:
        raise TableError(f"{TABLE}.isa.sources", "is missing; name the C++ files to compile")
    if set(paths) <= set(isa_paths):
        raise TableError(
            f"{TABLE}.isa.sources",
            "matches every one of the sources; at least one is compiled once: that with"
            " CUSTOM_PYPTO_PLUGIN",
        )
    once = tuple(path for path in paths if path not in isa_paths)
    return once, {path: [kind for kind in ISA_KINDS if path in of_kind[kind]] for path in isa_paths}


def _folder(root: Path, name: str, path: str) -> str:
    key = f"{TABLE}.{name}:"
    _check_inside(key, path)
    if not (root / path).is_dir():
        folders = [p.name for p in root.iterdir() if p.is_dir()]
        raise TableError(key, f"there is no folder {path!r} in {root}{did_you_mean(path, folders)}")
    return PurePosixPath(path).as_posix()


def _match(root: Path, name: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """The C++ files below `root` that `patterns` match, relative to it, each once; sorted."""
    found: set[str] = set()
    for pattern in patterns:
        key = f"{TABLE}.{name}: {pattern!r}"
        _check_inside(f"{TABLE}.{name}:", pattern)
        try:
            paths = [p.relative_to(root).as_posix() for p in root.glob(pattern) if p.is_file()]
        except ValueError as error:
            raise TableError(f"{key}:", str(error)) from None
        if not paths:
            beside = (root / pattern).parent.glob("*")
            similar = did_you_mean(pattern, [p.relative_to(root).as_posix() for p in beside])
            raise TableError(key, f"matches no file in {root}{similar}")
        for path in paths:
            if PurePosixPath(path).suffix not in SOURCE_SUFFIXES:
                raise TableError(
                    key,
                    f"matches {path!r}; a source ends in {', '.join(SOURCE_SUFFIXES)}; headers are"
                    f" found through {TABLE}.include-dirs",
                )
        found.update(paths)
    return tuple(sorted(found))


def _check_inside(key: str, path: str) -> None:
    """Refuse a path or pattern that does not stay below the folder of pyproject.toml."""
    parts = PurePosixPath(path).parts
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise TableError(key, f"no file has a name as long as in {path!r}")
    if not parts or path.startswith("/") or ".." in parts:
        raise TableError(
            key,
            f"{path!r} must be a path below the folder of pyproject.toml, so that a source"
            " distribution can hold it",
        )


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
        TableError: one of them names something else.
    """
    table = document
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise TableError(name, "must be a table", inner)
        table = inner
    return table
