"""What ``custom-pypto doctor`` says of the tools that build a plugin."""

from custom_pypto_build import build_tools, compiler
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check


def found() -> dict[str, Check]:
    return {check.name: check for check in build_tools.checks(DoctorContext())}


def test_names_the_compiler_and_ninja():
    assert {found()[each].level for each in ("C++ compiler", "ninja")} == {"ok"}


def test_what_is_missing_is_worth_a_note(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    for variable in ("PATH", "CUSTOM_PYPTO_TORCH_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    for name in ("C++ compiler", "torch headers"):
        assert found()[name].level == "note"
        assert found()[name].advice == "only building a plugin from source needs it"


def test_a_compiler_that_cannot_be_run_is_reported(monkeypatch, tmp_path):
    broken = tmp_path / "broken-c++"
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    for text in ("cannot be run", "exit status 7"):
        assert text in found()["C++ compiler"].value


def test_headers_of_a_project_beside_are_found(tmp_path):
    (include := tmp_path / "other/src/no_such_package/include").mkdir(parents=True)
    assert compiler.package_include("no_such_package", tmp_path) == include
