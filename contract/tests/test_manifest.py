"""The manifest: written and read back, and refused with the key and what is allowed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import (
    ADDED_KEYS,
    EMPTY_CONTRACT,
    Library,
    Manifest,
    ManifestError,
    ManifestOp,
)

GOOD = Manifest(
    name="add_custom",
    distribution="custom-pypto-add-custom",
    version="0.1.0",
    core_abi=(1, 0),
    torch_target="2.10",
    platform="linux_x86_64",
    ops=(ManifestOp("add_custom", "add_custom(Tensor self, Tensor other) -> Tensor"),),
    requires_ops=("other_op", "other_op.out"),
    library=Library("lib/libcustom_pypto_add_custom.so", "0" * 64),
    opp="opp",
)

OP = {"name": "a", "schema": "a() -> ()", **EMPTY_CONTRACT}
OPTIONAL = ("opp", "library", "ascendc", "kernels")


def document(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(GOOD.to_json())
    values.update(changes)
    return values


def parse(**changes: Any) -> Manifest:
    return manifest.parse(json.dumps(document(**changes)))


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / manifest.FILE_NAME
    GOOD.write(path)
    assert manifest.read(path) == GOOD
    assert manifest.read(path).to_json() == GOOD.to_json()


def test_a_key_of_a_later_hook_is_ignored() -> None:
    assert parse(licence="Apache-2.0") == GOOD


@pytest.mark.parametrize("key", sorted(ADDED_KEYS))
def test_a_contract_of_before_a_key_was_added_is_read(key: str) -> None:
    ops = document()["ops"]
    del ops[0][key]
    assert parse(ops=ops).ops[0].data[key] == EMPTY_CONTRACT[key]


def test_kernels_are_read_as_written() -> None:
    kernels = {"add_custom": ["CPU", "PrivateUse1"]}
    assert parse(kernels=kernels).kernels == kernels


@pytest.mark.parametrize("key", OPTIONAL)
def test_a_key_that_need_not_be_there(key: str) -> None:
    values = document(platform="any" if key == "library" else "linux_x86_64")
    del values[key]
    assert getattr(manifest.parse(json.dumps(values)), key) is None


@pytest.mark.parametrize("key", [k for k in document() if k not in OPTIONAL])
def test_a_missing_key_is_named(key: str) -> None:
    values = document()
    del values[key]
    with pytest.raises(ManifestError, match=f"^'{key}' is missing$"):
        manifest.parse(json.dumps(values))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"manifest_version": "1"}, "'manifest_version' must be an integer, got '1'"),
        ({"manifest_version": True}, "'manifest_version' must be an integer, got True"),
        ({"manifest_version": 2}, "'manifest_version' is 2, this core reads 1 to 1; upgrade"),
        ({"manifest_version": 0}, "'manifest_version' is 0, this core reads 1 to 1; upgrade"),
        ({"name": "Add-Custom"}, "'name' must be lower case letters, digits and '_', got"),
        ({"name": ""}, "'name' must be a non-empty string, got ''"),
        ({"distribution": 3}, "'distribution' must be a non-empty string, got 3"),
        ({"version": None}, "'version' must be a non-empty string, got None"),
        ({"core_abi": "1.0"}, "'core_abi' must be a list of two integers, [major, minor], got"),
        ({"core_abi": [1]}, "'core_abi' must be a list of two integers"),
        ({"core_abi": [1, True]}, "'core_abi' must be a list of two integers"),
        ({"core_abi": [1, -1]}, "'core_abi' must be a list of two integers"),
        ({"torch_target": "2"}, "'torch_target' must be 'major.minor', got '2'"),
        ({"torch_target": "9" * 5000 + ".1"}, "'torch_target' must be 'major.minor', got"),
        ({"version": "1\ud800"}, "'version' must hold no NUL and no lone surrogate, got"),
        ({"platform": "linux-x86"}, "'platform' must be a wheel platform tag, got"),
        (
            {"library": None},
            "'platform' must be 'any' without a library, and another with one, got",
        ),
        ({"platform": "any"}, "'platform' must be 'any' without a library, and another with one"),
        (
            {"kernels": {"add_custom": "CPU"}},
            "'kernels.add_custom' must be a list of dispatch keys",
        ),
        ({"ops": {}}, "'ops' must be a list of tables, got {}"),
        ({"ops": []}, "'ops' is empty; a plugin provides at least one op"),
        ({"ops": ["a"]}, "'ops[0]' must be a table, got 'a'"),
        ({"ops": [{"schema": "a() -> ()"}]}, "'ops[0].name' is missing"),
        ({"ops": [{"name": "a"}]}, "'ops[0].schema' is missing"),
        ({"ops": [{"name": "a::b", "schema": "a() -> ()"}]}, "'ops[0].name' must be an op name"),
        ({"ops": [OP | {"schema": "a"}]}, "'ops[0].schema': schema 'a' must have the form"),
        (
            {"ops": [OP | {"schema": "b() -> ()"}]},
            "'ops[0].schema' declares 'b' but 'ops[0].name' is 'a'",
        ),
        ({"ops": [{"name": "a", "schema": "a() -> ()"}]}, "'ops[0].summary' is missing"),
        ({"ops": [OP] * 2}, "'ops' names 'a' more than once"),
        ({"ops": [OP | {"npu": 5}]}, "'ops[0].npu' "),
        ({"ops": [OP | {"npu": {}}]}, "'ops[0].npu.graph' "),
        ({"ops": [OP | {"npu": {"graph": None}}]}, "'ops[0].npu.graph' "),
        ({"contract_version": 2}, "'contract_version' is 2, this core reads 1 to 1; upgrade"),
        ({"contract_version": "1"}, "'contract_version' must be an integer, got '1'"),
        ({"requires_ops": "a"}, "'requires_ops' must be a list of op names, got 'a'"),
        ({"requires_ops": ["a b"]}, "'requires_ops[0]' must be an op name without namespace"),
        ({"requires_ops": ["add_custom"]}, "'requires_ops' names 'add_custom', which is an op of"),
        ({"library": "lib.so"}, "'library' must be a table, got 'lib.so'"),
        ({"library": {"sha256": "0" * 64}}, "'library.path' is missing"),
        ({"library": {"path": "../a.so", "sha256": ""}}, "'library.path' must be a path inside"),
        ({"library": {"path": "/a.so", "sha256": ""}}, "'library.path' must be a path inside"),
        ({"library": {"path": ".", "sha256": ""}}, "'library.path' must be a path inside"),
        (
            {"library": {"path": "a\0.so", "sha256": ""}},
            "'library.path' must hold no NUL and no lone surrogate",
        ),
        ({"library": {"path": "a.so", "sha256": "0"}}, "'library.sha256' must be 64 lower case"),
        (
            {"ascendc": {"path": "a.so", "sha256": "0" * 64}},
            "'ascendc.architecture' is missing",
        ),
        (
            {"ascendc": {"path": "a.so", "sha256": "0" * 64, "architecture": "dav_2201"}},
            "'ascendc.architecture' must be a name such as 'dav-2201', got 'dav_2201'",
        ),
        ({"opp": ".."}, "'opp' must be a path inside the package, with '/', got '..'"),
        ({"opp": 1}, "'opp' must be a non-empty string, got 1"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError, match=f"^{re.escape(message)}"):
        parse(**changes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON: "),
        (b"[]", "'the manifest' must be a table, got []"),
        (b"null", "'the manifest' must be a table, got None"),
        (b"\xff", "is no text in UTF-8: 'utf-8' codec can't decode"),
        (b"[" * 500 + b"]" * 500, "'the manifest' must be a table"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "not JSON: maximum recursion"),
        (
            b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}",
            "'a value' is nested too deeply: at most 100 levels are allowed",
        ),
    ],
)
def test_a_file_that_holds_no_manifest_is_named(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / manifest.FILE_NAME
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=f"^{re.escape(f'{path}: {message}')}"):
        manifest.read(path)


def test_what_is_no_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"^no manifest: .* does not exist; custom_pypto_build"):
        manifest.read(tmp_path / manifest.FILE_NAME)
    with pytest.raises(ManifestError, match="is not a regular file"):
        manifest.read(tmp_path)


def test_the_op_of_a_schema_is_named_as_the_schema_says() -> None:
    schema = "foo.out(int[] a=[1, 2],\n    str s='(') -> (Tensor, int)"
    assert manifest.make_op({"schema": schema}) == ManifestOp("foo.out", schema)
    assert manifest.make_op({"schema": schema, "random": True, "x": 1}).data == {
        "schema": schema,
        **EMPTY_CONTRACT,
        "random": True,
    }


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"must have the form .*; leave the namespace out$"):
        manifest.make_op({"schema": "custom_pypto::foo() -> ()"})
