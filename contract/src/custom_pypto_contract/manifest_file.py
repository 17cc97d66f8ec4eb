"""Reads a manifest, and checks everything in it that core relies on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from . import abi, small_file, tables
from .manifest import (
    ADDED_KEYS,
    ANY_PLATFORM,
    ARCHITECTURE,
    EMPTY_CONTRACT,
    PLUGIN_NAME,
    AscendcLibrary,
    Library,
    Manifest,
    ManifestError,
    ManifestOp,
    is_op_name,
    make_op,
)
from .op_name import OP_NAME
from .small_file import UnsuitableFileError
from .tables import TableError, optional, record, text_matching

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


def _op_name(path: str, value: Any) -> None:
    if not isinstance(value, str) or not is_op_name(value):
        raise TableError(path, "must be an op name without namespace", value)


def _exists(path: str, value: Any) -> None:
    """Take any value: `contract_data` checks it when the contract is used first."""


_LIBRARY = {
    "path": _inner_path,
    "sha256": text_matching("[0-9a-f]{64}", "64 lower case hexadecimal digits"),
}
_ASCENDC = {**_LIBRARY, "architecture": text_matching(ARCHITECTURE, "a name such as 'dav-2201'")}
_NPU = {"graph": tables.list_of(tables.text)}
_OP = {
    "name": text_matching(OP_NAME.pattern, "an op name without namespace"),
    "schema": _text,
    **dict.fromkeys(EMPTY_CONTRACT, _exists),
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
    "requires_ops": tables.list_of(_op_name, "a list of op names"),
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
    library, ascendc = document.get("library"), document.get("ascendc")
    manifest = Manifest(
        name=document["name"],
        distribution=document["distribution"],
        version=document["version"],
        core_abi=(document["core_abi"][0], document["core_abi"][1]),
        torch_target=document["torch_target"],
        platform=document["platform"],
        ops=tuple(_make_ops(document["ops"])),
        requires_ops=tuple(document["requires_ops"]),
        library=library and Library(**_only(library, _LIBRARY)),
        opp=document.get("opp"),
        ascendc=ascendc and AscendcLibrary(**_only(ascendc, _ASCENDC)),
        kernels=document.get("kernels"),
    )
    if (manifest.library is None) != (manifest.platform == ANY_PLATFORM):
        raise ManifestError(
            f"'platform' must be {ANY_PLATFORM!r} without a library, and another with one, got"
            f" {manifest.platform!r}"
        )
    _check_ops(manifest)
    return manifest


def _only(table: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: table[key] for key in keys}


_VERSIONS = dict.fromkeys(("manifest_version", "contract_version"), tables.integer)
_check_types_of_versions = record(_VERSIONS, _VERSIONS, is_open=True)


def _check_versions(document: Mapping[str, Any]) -> None:
    """Check the versions first: a later one may have other keys."""
    _check_types_of_versions("", document)
    newest = {
        "manifest_version": abi.MANIFEST_VERSION,
        "contract_version": abi.CONTRACT_VERSION,
    }
    for name, own in newest.items():
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
    names = set()
    for op in manifest.ops:
        if op.name in names:
            raise ManifestError(f"'ops' names {op.name!r} more than once")
        names.add(op.name)
    for name in manifest.requires_ops:
        if name in names:
            raise ManifestError(f"'requires_ops' names {name!r}, which is an op of this plugin")
