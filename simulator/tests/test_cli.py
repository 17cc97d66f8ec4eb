"""The simulator's command line: `run` and `kernels`."""

import importlib.machinery
import importlib.metadata
import sys
from pathlib import Path

import pytest
from custom_pypto_build.errors import BuildError
from custom_pypto_simulator_build.cli import main
from custom_pypto_simulator_build.libraries import package_folder
from programs import run_program
from script import write_kernels


def test_run_lets_a_plain_script_use_torch_npu() -> None:
    script = (
        "import torch; print(torch.npu.device_count(), (torch.ones(2).npu() + 1).cpu().tolist())"
    )
    simulator = Path(sys.executable).with_name("custom-pypto-sim")
    python = (sys.executable, "-W", "ignore", "-c", script)
    options = ("run", "--devices", "2", "--")
    done = run_program(simulator, *options, *python, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"})
    assert done.stdout.splitlines()[-1] == "2 [2.0, 2.0]"


def test_run_needs_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--"]) == 2
    assert "needs a command" in capsys.readouterr().err


def test_kernels_of_the_project_that_it_is_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_kernels(tmp_path, 'extern "C" int aclnnNothing() { return 0; }\n')
    monkeypatch.chdir(tmp_path)
    assert main(["kernels"]) == 0
    entry = tmp_path / "build" / "simulated-opp" / "vendors" / "mine"
    assert capsys.readouterr().out == f"ASCEND_CUSTOM_OPP_PATH={entry}\n"
    assert (entry / "op_api" / "lib" / "libcust_opapi.so").is_file()


def test_a_build_error_is_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    assert main(["kernels", "--folder", str(tmp_path), str(missing)]) == 1
    expected = f"custom-pypto-sim: {missing}: {missing / 'pyproject.toml'} does not exist\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("package", "install"),
    [("torch", "pip install torch"), ("torch_npu", "pip install --no-deps torch_npu==2.13.0")],
)
def test_a_missing_package_is_named_with_the_release_that_fits(
    monkeypatch: pytest.MonkeyPatch, package: str, install: str
) -> None:
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", lambda name: None)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.13.0+cpu")
    with pytest.raises(BuildError, match=f"^{package} is not installed .*: {install}$"):
        package_folder(package)
