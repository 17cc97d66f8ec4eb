"""custom-pypto import: its options, what it prints, and its exit status."""

from pathlib import Path

import pytest
from custom_pypto_build.importing import ops_toml
from custom_pypto_cli import main
from custom_pypto_contract import small_file
from custom_pypto_contract.__main__ import main as contract_main

FILES = ("ops.toml", "npu.cpp", "pyproject.toml", "decisions.txt")
HEADER = (
    "// this file was generated automatically\n"
    "aclnnStatus aclnnTwistGetWorkspaceSize(aclTensor *xRef, int64_t k,"
    " uint64_t *workspaceSize, aclOpExecutor **executor);\n"
)


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "aclnn_twist.h"
    path.write_text(HEADER, encoding="utf-8")
    return path


def test_says_what_is_open_in_the_files(
    header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more.h"
    more.write_text(
        HEADER.replace("Twist", "Turn").replace("int64_t k", "float k"), encoding="utf-8"
    )
    folder = tmp_path / "plugin"
    arguments = ["--aclnn", str(header), "--aclnn", str(more), "--output", str(folder)]
    assert main(["import", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ops            2",
        "complete       1",
        "need a person  1",
        "  the schema   1",
        "",
        "more.h:2: turn: parameter 2, `float k`: a launch passes no such type",
        "wrote " + ", ".join(f"{folder}/{name}" for name in FILES),
    ]
    assert {path.name for path in folder.iterdir()} == {*FILES}
    assert main(["import", "--aclnn", str(header), "--output", f"{folder}2"]) == 0
    assert "need a person" not in capsys.readouterr().out


def test_files_with_one_name_in_two_folders_are_told_apart(
    header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other := tmp_path / "other" / header.name).parent.mkdir()
    other.write_text(HEADER.replace("generated", "written").replace("Twist", "Turn"), "utf-8")
    paths = [str(header), str(other)]
    assert main(["import", "--aclnn", *paths, "--output", str(tmp_path / "plugin")]) == 0
    out = capsys.readouterr().out
    assert f"{other}:2: turn: a person wrote this header" in out
    assert "twist: a person wrote" not in out
    assert f"# {header}:2\n[twist]" in (tmp_path / "plugin" / "ops.toml").read_text("utf-8")


# By hand; without an output.
@pytest.mark.parametrize(
    "changed", [("generated", "written"), ("aclTensor *xRef", "const aclTensor *x")]
)
def test_where_no_op_is_complete_it_says_that_the_file_is_no_contract_yet(
    header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: tuple[str, str]
) -> None:
    header.write_text(HEADER.replace(*changed), encoding="utf-8")
    assert main(["import", "--aclnn", str(header), "--output", str(tmp_path / "plugin")]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("ops.toml has no complete op: `python -m custom_pypto_contract` and a")
    refusal = contract_main([str(tmp_path / "plugin" / "ops.toml")])
    assert refusal is not None
    assert refusal.startswith("error: ops.toml: there is no op in it; begin one with [my_op]. If `")


def test_what_a_build_would_not_read_is_refused_before_the_ops_are_checked(
    header: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_file, "MAX_SIZE", 64)
    monkeypatch.setattr(ops_toml, "check", lambda op: pytest.fail("an op was checked"))
    assert main(["import", "--aclnn", str(header)]) == 2
    error = capsys.readouterr().err
    assert "ops.toml would have more than 64 bytes; give fewer files in one call" in error


def test_unsuitable_files_are_listed_and_the_others_are_imported(
    header: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.h").touch()
    (tmp_path / "tiling.cpp").write_text("int x;")
    (tmp_path / "binary.cpp").write_bytes(b"\xff\xfe")
    (tmp_path / "list.yaml").write_text("a: b")
    folder = tmp_path / "plugin"
    files = ["--aclnn", "empty.h", header.name, "missing.h", "--reg-op", "tiling.cpp", "binary.cpp"]
    files += ["--op-plugin", "list.yaml"]
    paths = [each if each.startswith("-") else str(tmp_path / each) for each in files]
    assert main(["import", *paths, "--output", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    skipped = [line for line in lines if line.startswith("skipped: ")]
    unsuitable = ("empty.h", "missing.h", "tiling.cpp", "binary.cpp", "list.yaml")
    assert [[name for name in unsuitable if name in line] for line in skipped] == [
        [name] for name in unsuitable
    ]
    assert (folder / "decisions.txt").read_text(encoding="utf-8").splitlines() == skipped
    assert contract_main([str(folder / "ops.toml")]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a file by --aclnn, --reg-op or --op-plugin"),
        (["--aclnn", "missing.h"], "cannot read missing.h: No such file or directory"),
        (["--aclnn", "."], "cannot read .: is not a regular file"),
        (
            ["--aclnn", "empty.h"],
            "empty.h declares no kernel; --aclnn takes a header with functions",
        ),
        (["--reg-op", "aclnn_twist.h"], "aclnn_twist.h has no operator"),
        (["--aclnn", "aclnn_twist.h", "--func", "f"], "--func is a function of the file"),
        (["--op-plugin", "aclnn_twist.h"], "aclnn_twist.h is not YAML|has none of the lists"),
    ],
)
def test_files_that_cannot_be_read_are_errors_without_a_traceback(
    arguments: list[str],
    message: str,
    header: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(header.parent)
    Path("empty.h").touch()
    assert main(["import", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("custom-pypto import: ")
    assert any(each in error for each in message.split("|"))
    assert not (header.parent / "ops.toml").exists()
