"""custom-pypto new: what it prints, and what it refuses."""

import shlex
from pathlib import Path

import pytest
from custom_pypto_cli import main

REFUSED = Path(__file__).with_name("new_refused.txt")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    """Return the error of ``custom-pypto new``, which writes nothing."""
    before = sorted(Path().rglob("*"))
    assert main(["new", *arguments]) == status
    assert sorted(Path().rglob("*")) == before
    return capsys.readouterr().err.removeprefix("custom-pypto new: ")


def test_says_what_is_left_to_do(capsys):
    schema = "rms(Tensor x, Tensor? weight=None, float eps=1e-6) -> Tensor"
    schemas = ["--schema", schema, "--schema", "twice(Tensor x) -> (Tensor, Tensor)"]
    assert main(["new", "acme-rms", *schemas]) == 0
    assert capsys.readouterr().out == (
        "wrote acme-rms:\n"
        "  .gitignore\n"
        "  README.md\n"
        "  csrc/acme_rms.cpp\n"
        "  ops.toml\n"
        "  pyproject.toml\n"
        "  tests/test_conformance.py\n"
        "\n"
        "left to you:\n"
        "  rms: what it computes     x * x, element by element (definition in ops.toml,"
        " csrc/acme_rms.cpp)\n"
        "  rms: not read yet         weight (Tensor?), eps (float)\n"
        "  rms: shapes and dtypes    every tensor is like x (ops.toml)\n"
        "  twice: what it computes   x * x, element by element (definition in ops.toml,"
        " csrc/acme_rms.cpp)\n"
        "  twice: shapes and dtypes  every tensor is like x (ops.toml)\n"
        "  licence                   none (pyproject.toml)\n"
        "\n"
        "next:\n"
        "  cd acme-rms\n"
        "  pip install --no-build-isolation -e .\n"
        "  python -m pytest tests  # by custom-pypto-testing: in a clone of the project, `pip"
        " install --no-build-isolation ./testing`\n"
    )


def test_says_what_was_written_for_npus(capsys):
    schemas = ["--schema", "my_op(Tensor x, int k) -> Tensor", "--schema", "no(Tensor x) -> Tensor"]
    listed = ["--schema", "lists(Tensor x, Tensor[] y) -> Tensor"]
    assert main(["new", "acme", "--npu", *schemas, *listed]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "my_op: NPU aclnnMyOp(x, k, result), in the order of its header (ops.toml)" in lines
    assert "lists: NPU aclnnLists(x, y, result), in the order of its header (ops.toml)" in lines
    graphs = [line for line in lines if ": graph" in line]
    assert graphs == ["lists: graph none: an operator takes other arguments (docs/npu.md)"]


def test_nothing_is_overwritten(capsys):
    Path("acme-rms").mkdir()
    assert refused(capsys, "acme-rms") == (
        "acme-rms exists, and nothing is overwritten; choose another NAME\n"
    )


def test_a_plugin_of_this_project_and_its_op_have_no_prefix():
    assert main(["new", "custom-pypto-rms"]) == 0
    project = Path("custom-pypto-rms", "pyproject.toml").read_text("utf-8")
    assert '\nrms = "custom_pypto_rms"\n' in project
    assert Path("custom-pypto-rms", "csrc", "rms.cpp").is_file()


@pytest.mark.parametrize("paragraph", REFUSED.read_text(encoding="utf-8").split("\n\n")[1:])
def test_what_cannot_be_written_is_an_error_that_says_why(paragraph, capsys):
    arguments, error = paragraph.rstrip("\n").split("\n! ")
    assert refused(capsys, *shlex.split(arguments)) == f"{error}\n"


def test_a_name_that_no_folder_can_have_is_an_error(capsys):
    assert refused(capsys, "a" * 300).endswith("a: File name too long\n")
