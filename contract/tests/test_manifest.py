"""The manifest: written and read back, and refused with the key and what is allowed."""

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
    kernels={"add_custom": ["CPU", "PrivateUse1"]},
)

REFUSED = Path(__file__).with_name("contracts") / "manifest_refused.txt"
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


@pytest.mark.parametrize("paragraph", REFUSED.read_text(encoding="utf-8").split("\n\n")[1:])
def test_a_wrong_value_is_named_with_what_is_allowed(paragraph: str) -> None:
    given, error = paragraph.rstrip("\n").split("\n! ")
    path, _, value = given.partition(" ")
    whole = document()
    key = path.removeprefix("ops.0.")
    (whole if key == path else whole["ops"][0])[key] = json.loads(value)
    with pytest.raises(ManifestError) as caught:
        manifest.parse(json.dumps(whole))
    assert str(caught.value) == error


def test_two_ops_have_two_names() -> None:
    with pytest.raises(ManifestError, match=r"'ops' names 'add_custom' more than once"):
        parse(ops=document()["ops"] * 2)


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
