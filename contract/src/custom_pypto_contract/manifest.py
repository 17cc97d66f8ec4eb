"""The manifest: what a plugin's wheel says of itself, readable without running any of its code.

It is the file ``custom_pypto_plugin.json`` in the plugin's top-level package. `custom_pypto_build`
writes it after linking; core reads it before the plugin's module is imported or its library opened.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .errors import ContractError
from .op_name import OP_NAME, parts_of_schema

GROUP = "custom_pypto.plugins"
"""The entry point group: ``<plugin> = "<module>"`` in a plugin's pyproject.toml."""
FILE_NAME = "custom_pypto_plugin.json"
VERSION = 2
CONTRACT_VERSION = 1
"""Of the contracts in a manifest. A core reads those of its own version and of all before it."""
MAX_SIZE = 4 << 20
"""Bytes that a manifest may have."""
ANY_PLATFORM = "any"
CORE_ABI = (1, 0)
"""ABI between core and plugins (major, minor) of this core; abi.h says the same to C++."""
TORCH_TARGET = (2, 10)
"""The oldest PyTorch whose stable ABI plugins are compiled for (major, minor)."""

NO_CONTRACT: Mapping[str, Any] = {
    "about": "",
    "definition": "",
    "tensors": [],
    "rules": [],
    "outputs": None,
    "words": {},
    "groups": {},
    "npu": {"limits": {}, "fits": {}, "launch": [], "graph": []},
}
"""What a contract says that says no more than the schema: every key that there is."""

_PLUGIN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TORCH = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
_PLATFORM = re.compile(r"[a-z0-9_]+")
_ARCHITECTURE = re.compile(r"[A-Za-z0-9.-]+")
# JSON can hold them, but no path can, and nobody could print them.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class ManifestError(ValueError):
    """A manifest is missing, unreadable or not valid; the text names the file and the key."""


@dataclass(frozen=True)
class Op:
    """One op: its name, with the overload when it has one (``foo.bar``), and its schema.

    `contract` is what its contract says besides; `data` is the whole of it, for
    `custom_pypto_contract.contract_data.read_contract`.
    """

    name: str
    schema: str
    contract: Mapping[str, Any] = field(default_factory=lambda: NO_CONTRACT)

    @property
    def data(self) -> Mapping[str, Any]:
        """The data of its contract."""
        return {"schema": self.schema, **self.contract}


@dataclass(frozen=True)
class Library:
    """The plugin's library: path relative to the manifest's folder, and hash of its bytes."""

    path: str
    sha256: str


@dataclass(frozen=True)
class AscendcLibrary(Library):
    """The library of the plugin's AscendC kernels, and the NPUs that it is for: ``dav-2201``."""

    architecture: str


@dataclass(frozen=True)
class Manifest:
    """A plugin as its wheel describes it.

    `platform` is `ANY_PLATFORM` and `library` None for a plugin whose kernels are all Python.
    `ascendc` is None where the wheel was built without CANN. `opp` is the folder of an opp package
    relative to the manifest's folder, or None. `requires_ops` are ops of other plugins without
    which this one cannot work.
    """

    name: str
    distribution: str
    version: str
    core_abi: tuple[int, int]
    torch_target: str
    platform: str
    ops: tuple[Op, ...]
    requires_ops: tuple[str, ...]
    library: Library | None
    opp: str | None = None
    ascendc: AscendcLibrary | None = None

    def to_json(self) -> str:
        """The text of the manifest file; the same manifest always gives the same text."""
        ops = [{"name": op.name, **op.data} for op in self.ops]
        versions = {"manifest_version": VERSION, "contract_version": CONTRACT_VERSION}
        return json.dumps({**versions, **asdict(self), "ops": ops}, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Write the manifest to `path`, whose folder must exist."""
        path.write_text(self.to_json(), encoding="utf-8")


def is_plugin_name(name: str) -> bool:
    """Whether `name` can name a plugin: lower case letters, digits, ``_``; a letter first."""
    return _PLUGIN_NAME.fullmatch(name) is not None


def is_architecture(name: str) -> bool:
    """Whether `name` can name the NPUs that AscendC kernels are for, as in a file's name."""
    return _ARCHITECTURE.fullmatch(name) is not None


def is_op_name(name: str) -> bool:
    """Whether `name` can name an op, with or without overload, without a namespace."""
    return OP_NAME.fullmatch(name) is not None


def op_of_schema(schema: str) -> Op:
    """The op that `schema` declares.

    Raises:
        ManifestError: `schema` is not ``name(arguments) -> returns``, or has a namespace.
    """
    try:
        return Op(parts_of_schema(schema)[0], schema)
    except ContractError as error:
        raise ManifestError(str(error)) from None


def op_of_contract(data: Mapping[str, Any]) -> Op:
    """The op whose contract `data` is; see `custom_pypto_contract.contract.Op.data`."""
    declared = op_of_schema(data["schema"])
    return Op(declared.name, declared.schema, {key: data[key] for key in NO_CONTRACT})


def read(path: Path) -> Manifest:
    """The manifest in the file `path`.

    Raises:
        ManifestError: the file is missing, unreadable, or not a valid manifest.
    """
    try:
        # Before it is opened: a pipe would wait for a writer for ever, a device never end.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ManifestError(f"{path}: is not a regular file; reinstall the plugin")
        if status.st_size > MAX_SIZE:
            raise ManifestError(
                f"{path}: has {status.st_size} bytes, a manifest has at most {MAX_SIZE}; reinstall"
                " the plugin"
            )
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ManifestError(
            f"no manifest: {path} does not exist; build the plugin with custom_pypto_build,"
            " which writes it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    try:
        return parse(text)
    except ManifestError as error:
        raise ManifestError(f"{path}: {error}") from error.__cause__


def parse(text: str) -> Manifest:
    """The manifest that the JSON `text` holds. Keys that this version does not know are ignored.

    Raises:
        ManifestError: `text` is not JSON or not a valid manifest.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(
            f"not JSON: {error}; build the plugin again, or reinstall it"
        ) from error
    if not isinstance(document, dict):
        raise ManifestError(f"must be a JSON object, got {_kind(document)}")
    _check_version(document)
    table = _Table(document, "")
    _check_contract_version(table)
    manifest = Manifest(
        name=table.matching("name", _PLUGIN_NAME, "lower case letters, digits and '_'"),
        distribution=table.text("distribution"),
        version=table.text("version"),
        core_abi=table.pair("core_abi"),
        torch_target=table.matching("torch_target", _TORCH, "'major.minor'"),
        platform=table.matching("platform", _PLATFORM, "a wheel platform tag"),
        ops=tuple(_op(entry) for entry in table.tables("ops")),
        requires_ops=tuple(table.op_names("requires_ops")),
        library=_library(table),
        opp=table.optional_path("opp"),
        ascendc=_ascendc(table),
    )
    if (manifest.library is None) != (manifest.platform == ANY_PLATFORM):
        raise ManifestError(
            f"'platform' must be {ANY_PLATFORM!r} without a library, and another with one, got"
            f" {manifest.platform!r}"
        )
    _check_ops(manifest)
    return manifest


def _check_version(document: Mapping[str, Any]) -> None:
    given = document.get("manifest_version")
    if type(given) is not int:
        raise ManifestError(
            f"'manifest_version' must be the integer {VERSION}, got {_shown(given)}"
            if "manifest_version" in document
            else "'manifest_version' is missing"
        )
    if given != VERSION:
        advice = "upgrade custom-pypto-core" if given > VERSION else "rebuild the plugin"
        raise ManifestError(
            f"'manifest_version' is {given}, this core reads version {VERSION}; {advice}"
        )


def _check_contract_version(table: _Table) -> None:
    version = table.integer("contract_version")
    if not 1 <= version <= CONTRACT_VERSION:
        raise ManifestError(
            f"'contract_version' is {version}, this core reads 1 to {CONTRACT_VERSION}; upgrade"
            " custom-pypto-core"
        )


def _check_ops(manifest: Manifest) -> None:
    if not manifest.ops:
        raise ManifestError("'ops' is empty; a plugin provides at least one op")
    names = [op.name for op in manifest.ops]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"'ops' names {name!r} more than once")
    for name in manifest.requires_ops:
        if name in names:
            raise ManifestError(f"'requires_ops' names {name!r}, which is an op of this plugin")


def _op(table: _Table) -> Op:
    name = table.matching("name", OP_NAME, "an op name without namespace")
    schema = table.text("schema")
    try:
        declared = op_of_schema(schema)
    except ManifestError as error:
        raise ManifestError(f"'{table.key('schema')}': {error}") from None
    if declared.name != name:
        raise ManifestError(
            f"'{table.key('schema')}' declares {declared.name!r} but '{table.key('name')}'"
            f" is {name!r}"
        )
    return Op(declared.name, declared.schema, {key: table.value(key) for key in NO_CONTRACT})


def _library(document: _Table) -> Library | None:
    table = document.optional_table("library")
    return None if table is None else Library(table.path("path"), _sha256(table))


def _ascendc(document: _Table) -> AscendcLibrary | None:
    table = document.optional_table("ascendc")
    if table is None:
        return None
    architecture = table.matching("architecture", _ARCHITECTURE, "such as 'dav-2201'")
    return AscendcLibrary(table.path("path"), _sha256(table), architecture)


def _sha256(table: _Table) -> str:
    return table.matching("sha256", _SHA256, "64 lower case hexadecimal digits")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Table:
    """A JSON object whose values are taken out with their types checked."""

    def __init__(self, values: Mapping[str, Any], prefix: str) -> None:
        self.values = values
        self._prefix = prefix

    def key(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def text(self, name: str) -> str:
        value = self.value(name)
        if not isinstance(value, str) or not value:
            raise self._error(name, "must be a non-empty string", value)
        if _NO_TEXT.search(value):
            raise self._error(name, "must hold no NUL and no lone surrogate", value)
        return value

    def matching(self, name: str, pattern: re.Pattern[str], allowed: str) -> str:
        value = self.text(name)
        if pattern.fullmatch(value) is None:
            raise self._error(name, f"must be {allowed}", value)
        return value

    def path(self, name: str) -> str:
        value = self.text(name)
        parts = PurePosixPath(value).parts
        if value.startswith("/") or "\\" in value or ".." in parts or parts == ():
            raise self._error(name, "must be a path inside the package, with '/'", value)
        return value

    def optional_path(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.path(name)

    def pair(self, name: str) -> tuple[int, int]:
        value = self.value(name)
        match value:
            case [int() as major, int() as minor] if type(major) is type(minor) is int:
                if major >= 0 and minor >= 0:
                    return major, minor
        raise self._error(name, "must be a list of two integers, [major, minor]", value)

    def integer(self, name: str) -> int:
        value = self.value(name)
        if type(value) is not int:
            raise self._error(name, "must be an integer", value)
        return value

    def op_names(self, name: str) -> list[str]:
        value = self.value(name)
        if not isinstance(value, list):
            raise self._error(name, "must be a list of op names", value)
        for item in value:
            if not isinstance(item, str) or not is_op_name(item):
                raise self._error(name, "must be a list of op names without namespace", item)
        return value

    def table(self, name: str) -> _Table:
        value = self.value(name)
        if not isinstance(value, dict):
            raise self._error(name, "must be an object", value)
        return _Table(value, f"{self.key(name)}.")

    def optional_table(self, name: str) -> _Table | None:
        return None if self.values.get(name) is None else self.table(name)

    def tables(self, name: str) -> list[_Table]:
        value = self.value(name)
        if not isinstance(value, list):
            raise self._error(name, "must be a list of objects", value)
        for position, item in enumerate(value):
            if not isinstance(item, dict):
                raise self._error(f"{name}[{position}]", "must be an object", item)
        return [_Table(item, f"{self.key(name)}[{i}].") for i, item in enumerate(value)]

    def value(self, name: str) -> Any:
        if name not in self.values:
            raise ManifestError(f"'{self.key(name)}' is missing")
        return self.values[name]

    def _error(self, name: str, rule: str, value: object) -> ManifestError:
        return ManifestError(f"'{self.key(name)}' {rule}, got {_shown(value)}")
