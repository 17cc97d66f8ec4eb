"""The manifest: what a plugin's wheel says about itself, readable without running any of its code.

It is the file ``custom_pypto_plugin.json`` in the plugin's top-level package. `custom_pypto_build`
writes it after linking; core reads it before it imports the plugin or opens its library, and checks
everything in it that core relies on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from . import abi, small_file, tables
from .errors import ContractError
from .op_name import OP_NAME, parts_of_schema
from .small_file import UnsuitableFileError
from .tables import TableError, optional, record, text_matching

GROUP = "custom_pypto.plugins"
"""The entry point group: ``<plugin> = "<module>"`` in a plugin's pyproject.toml."""
FILE_NAME = "custom_pypto_plugin.json"
ANY_PLATFORM = "any"
ASCENDC_SUFFIX = "_ascendc"
"""Ends the name of a library with AscendC kernels, after the plugin's."""
OPP_FOLDER = "opp"
"""Where the Python package of a plugin has its opp packages."""
OPP_LIBRARY = PurePosixPath("op_api/lib/libcust_opapi.so")
"""Where an opp package has the library of its kernels. kernel_search.h has these three facts in
C++; core's test_npu_kernels.py puts libraries where these say and has C++ find them."""

PLUGIN_NAME = r"[a-z][a-z0-9_]*"
ARCHITECTURE = r"[A-Za-z0-9.-]+"
"""The NPUs that AscendC kernels are for, as in a file's name."""

EMPTY_CONTRACT: Mapping[str, Any] = {
    "summary": "",
    "definition": "",
    "random": False,
    "tensors": [],
    "rules": [],
    "outputs": None,
    "flops": None,
    "bytes": None,
    "descriptions": {},
    "groups": {},
    "templates": {},
    "npu": {"limits": {}, "supports": {}, "launch": [], "graph": []},
}
"""The data of a contract that has no more than a schema."""

ADDED_KEYS = frozenset({"flops", "bytes", "random"})
"""Keys that were added later. If a manifest lacks one, the value in EMPTY_CONTRACT counts."""


class ManifestError(ValueError):
    """A manifest is missing, unreadable or not valid; the text names the file and the key."""


@dataclass(frozen=True)
class ManifestOp:
    """An op in a manifest: its name, with the overload when it has one (``foo.bar``), and schema.

    `contract` is the rest of its contract. `data` is all of it, as
    `custom_pypto_contract.contract_data.read_contract` takes it.
    """

    name: str
    schema: str
    contract: Mapping[str, Any] = field(default_factory=lambda: EMPTY_CONTRACT)

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

    A plugin whose kernels are all Python has the `platform` `ANY_PLATFORM` and no `library`.
    `ascendc` is None where the wheel was built without CANN. `opp` is the folder of an opp package
    relative to the manifest's folder, or None. `requires_ops` are ops of other plugins that this
    plugin needs. `kernels` are the dispatch keys of devices for which each op has a kernel; None
    where the build did not import the plugin.
    """

    name: str
    distribution: str
    version: str
    core_abi: tuple[int, int]
    torch_target: str
    platform: str
    ops: tuple[ManifestOp, ...]
    requires_ops: tuple[str, ...]
    library: Library | None
    opp: str | None = None
    ascendc: AscendcLibrary | None = None
    kernels: Mapping[str, Sequence[str]] | None = None

    def to_json(self) -> str:
        """Return the text of the manifest file; the same manifest always gives the same text."""
        ops = [{"name": op.name, **op.data} for op in self.ops]
        return json.dumps({**_VERSIONS, **asdict(self), "ops": ops}, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Write the manifest to `path`, whose folder must exist."""
        path.write_text(self.to_json(), encoding="utf-8")


def make_op(data: Mapping[str, Any]) -> ManifestOp:
    """Return the op of a contract's data; EMPTY_CONTRACT has what `data` leaves out.

    Raises:
        ManifestError: the schema is not ``name(arguments) -> returns``, or has a namespace.
    """
    try:
        name, _, _ = parts_of_schema(data["schema"])
    except ContractError as error:
        raise ManifestError(str(error)) from None
    said = {key: value for key, value in data.items() if key in EMPTY_CONTRACT}
    return ManifestOp(name, data["schema"], {**EMPTY_CONTRACT, **said})


# A level of ops.toml becomes at most two of a manifest.
_MOST_LEVELS = 100
# JSON can hold these, but paths cannot, and terminals cannot print them.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def _text(path: str, value: Any) -> None:
    tables.filled_text(path, value)
    if _NO_TEXT.search(value):
        raise TableError(path, "must hold no NUL and no lone surrogate", value)


def _inner_path(path: str, value: Any) -> None:
    _text(path, value)
    parts = PurePosixPath(value).parts
    if value.startswith("/") or "\\" in value or ".." in parts or parts == ():
        raise TableError(path, "must be a path inside the package, with '/'", value)


def _version_pair(path: str, value: Any) -> None:
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or any(type(each) is not int or each < 0 for each in value):
        raise TableError(path, "must be a list of two integers, [major, minor]", value)


_OP_NAME = text_matching(OP_NAME.pattern, "an op name without namespace")
_LIBRARY = {
    "path": _inner_path,
    "sha256": text_matching("[0-9a-f]{64}", "64 lower case hexadecimal digits"),
}
_ASCENDC = {**_LIBRARY, "architecture": text_matching(ARCHITECTURE, "a name such as 'dav-2201'")}
_NPU = {"graph": tables.list_of(tables.text)}
_OP = {
    "name": _OP_NAME,
    "schema": _text,
    # Any values: `contract_data` checks them when the contract is used first.
    **dict.fromkeys(EMPTY_CONTRACT, tables.anything),
    # Core looks for graph operators while it loads a plugin.
    "npu": record(_NPU, _NPU, is_open=True),
}
_REQUIRED = {
    "name": text_matching(PLUGIN_NAME, "lower case letters, digits and '_'"),
    "distribution": _text,
    "version": _text,
    "core_abi": _version_pair,
    "torch_target": text_matching(r"[0-9]{1,4}\.[0-9]{1,4}", "'major.minor'"),
    "platform": text_matching("[a-z0-9_]+", "a wheel platform tag"),
    "ops": tables.list_of(record(_OP, _OP.keys() - ADDED_KEYS, is_open=True), "a list of tables"),
    "requires_ops": tables.list_of(_OP_NAME, "a list of op names"),
}
_OPTIONAL = {
    "library": optional(record(_LIBRARY, _LIBRARY, is_open=True)),
    "opp": optional(_inner_path),
    "ascendc": optional(record(_ASCENDC, _ASCENDC, is_open=True)),
    "kernels": optional(tables.table_of(tables.list_of(_text, "a list of dispatch keys"))),
}
_MANIFEST = record({**_REQUIRED, **_OPTIONAL}, _REQUIRED, is_open=True)


def read(path: Path) -> Manifest:
    """Return the manifest in the file `path`.

    Raises:
        ManifestError: the file is missing, unreadable, or not a valid manifest.
    """
    try:
        text = small_file.read(path)
    except FileNotFoundError:
        raise ManifestError(
            f"no manifest: {path} does not exist; custom_pypto_build writes it into the wheel"
        ) from None
    except UnsuitableFileError as error:
        raise ManifestError(f"{path}: {error}") from None
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    try:
        return parse(text)
    except ManifestError as error:
        raise ManifestError(f"{path}: {error}") from error.__cause__


def parse(text: str) -> Manifest:
    """Return the manifest in a JSON text. Keys that this version does not know are ignored.

    Raises:
        ManifestError: `text` is not JSON or not a valid manifest.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"not JSON: {error}") from error
    try:
        tables.table("the manifest", document)
        tables.shallow("a value", document, _MOST_LEVELS)
        _check_versions(document)
        _MANIFEST("", document)
    except TableError as error:
        raise ManifestError(f"'{error.path}' {error.problem}") from None
    values = {each.name: document.get(each.name) for each in fields(Manifest)}
    for key, kind in (("library", Library), ("ascendc", AscendcLibrary)):
        if (given := values[key]) is not None:
            values[key] = kind(**{each.name: given[each.name] for each in fields(kind)})
    for key in ("core_abi", "requires_ops"):
        values[key] = tuple(document[key])
    manifest = Manifest(**{**values, "ops": tuple(_make_ops(document["ops"]))})
    if (manifest.library is None) != (manifest.platform == ANY_PLATFORM):
        raise ManifestError(
            f"'platform' must be {ANY_PLATFORM!r} without a library, and another with one, got"
            f" {manifest.platform!r}"
        )
    _check_ops(manifest)
    return manifest


_VERSIONS = {"manifest_version": abi.MANIFEST_VERSION, "contract_version": abi.CONTRACT_VERSION}
_INTEGER = tables.instance_of((int,), "an integer")
_check_types_of_versions = record(dict.fromkeys(_VERSIONS, _INTEGER), _VERSIONS, is_open=True)


def _check_versions(document: Mapping[str, Any]) -> None:
    """Check the versions first: a later one may have other keys."""
    _check_types_of_versions("", document)
    for name, own in _VERSIONS.items():
        if not 1 <= document[name] <= own:
            advice = f"this core reads 1 to {own}; upgrade custom-pypto-core"
            raise TableError(name, f"is {document[name]}, {advice}")


def _make_ops(ops: list[dict[str, Any]]) -> Iterator[ManifestOp]:
    for index, each in enumerate(ops):
        where = f"ops[{index}]"
        try:
            declared = make_op(each)
        except ManifestError as error:
            raise ManifestError(f"'{where}.schema': {error}") from None
        if declared.name != each["name"]:
            raise ManifestError(
                f"'{where}.schema' declares {declared.name!r} but '{where}.name' is"
                f" {each['name']!r}"
            )
        yield declared


def _check_ops(manifest: Manifest) -> None:
    if not manifest.ops:
        raise ManifestError("'ops' is empty; a plugin provides at least one op")
    names = Counter(op.name for op in manifest.ops)
    for name, count in names.items():
        if count > 1:
            raise ManifestError(f"'ops' names {name!r} more than once")
    for name in manifest.requires_ops:
        if name in names:
            raise ManifestError(f"'requires_ops' names {name!r}, which is an op of this plugin")
