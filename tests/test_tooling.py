"""The files that configure the repository's tools agree with each other."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import distributions
import pytest
import run_environments
from repository import ROOT
from run_environments import read_outcome

from examples import wheels
from examples.errors import ExampleError

PROJECTS = distributions.find(wheels.OPS)


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_pre_commit_uses_the_version_of_tox(tool: str) -> None:
    pin = re.compile(rf"\b{tool}==([\w.]+)")
    hooks = set(pin.findall((ROOT / ".pre-commit-config.yaml").read_text()))
    tox = set(pin.findall((ROOT / "tox.ini").read_text()))
    assert hooks == tox
    assert len(hooks) == 1


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the commands of pip and `custom-pypto` instead of running them."""
    seen: list[str] = []

    def pip(*arguments: str | Path) -> None:
        names = [str(each) for each in arguments if each in PROJECTS]
        seen.append(" ".join([str(arguments[0]), *(names or [Path(arguments[-1]).name])]))
        if arguments[0] == "wheel":
            name = next(name for name, folder in PROJECTS.items() if folder == arguments[-1])
            wheel = f"{name.replace('-', '_')}-0-py3-none-any.whl"
            Path(arguments[arguments.index("--wheel-dir") + 1], wheel).touch()

    def run(*command: str | Path, capture: bool = False) -> str:
        if wheels.DISTRIBUTIONS in command:
            return really_run(*command, capture=capture)
        names = command[6:] if "uninstall" in command else command[-1:]
        seen.append(" ".join(map(str, (command[4], *names))) if "pip" in command else "list")
        return ""

    really_run = wheels._run
    monkeypatch.setattr(distributions, "pip", pip)
    monkeypatch.setattr(wheels, "_run", run)
    return seen


def test_distributions_are_found_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new_op", "other"):
        folder = tmp_path / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "acme-{name}"\n')
    monkeypatch.setattr(distributions, "ROOT", tmp_path)
    assert [*distributions.find(["plugins/*"])] == ["acme-new_op", "acme-other"]


def test_the_builder_and_core_are_installed_before_the_first_op_is_built(
    steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "rmtree", lambda folder, ignore_errors: None)
    (tmp_path / "custom_pypto_core-old.whl").touch()
    distributions.build(tmp_path, PROJECTS)
    # Two are built at once, in any order.
    required = [*PROJECTS][:4]
    assert {*steps[:4]} == {f"wheel {PROJECTS[each].name}" for each in required}
    assert steps[4] == f"install {' '.join(required)}"
    assert "wheel add_custom" in steps[5:]
    assert len([*tmp_path.iterdir()]) == len(PROJECTS)


def test_examples_list_the_ops_once_core_is_there(steps: list[str], tmp_path: Path) -> None:
    installed = [name for name, _ in wheels.install_one_by_one(tmp_path)]
    assert installed == [*PROJECTS][2:]
    assert steps[0].startswith(
        "uninstall custom-pypto-contract custom-pypto-core custom-pypto-blocks "
    )
    # Timing needs its compiler.
    assert "custom-pypto-build" not in steps[0]
    assert steps[1:3] == ["install custom-pypto-core", "list"]


def test_examples_change_no_environment_but_a_virtual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(ExampleError, match="only runs in a virtual environment"):
        wheels.build(tmp_path, wheels.OPS)


def test_examples_with_transformers_install_what_its_models_run_on() -> None:
    assert [*distributions.find(wheels.FOR_TRANSFORMERS)] == [
        "custom-pypto-contract",
        "custom-pypto-build",
        "custom-pypto-core",
        "custom-pypto-blocks",
        "custom-pypto-lightning-indexer",
        "custom-pypto-sparse-attention",
        "custom-pypto-transformers",
    ]


def test_ci_runs_the_command_of_the_readme() -> None:
    command = "python3 -m pip install tox && tox"
    assert command in (ROOT / ".ci" / "run").read_text()
    assert command in (ROOT / "README.md").read_text()


def test_ci_script_is_sound_bash() -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


NAMED = set(re.findall(r"^\[testenv:(\S+)\]", (ROOT / "tox.ini").read_text(), re.M))
NEWEST = "newest-{transformers,npu,vllm,mindspore}"


def test_the_workflows_run_environments_of_tox() -> None:
    run = re.compile(r"\btox -e ([\w,-]+)$|\benvironment: \[(.+)\]$", re.M)
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        names = ",".join(map("".join, run.findall(workflow.read_text())))
        assert {*re.findall(r"[\w-]+", names)} <= NAMED


# Their results are for people, or they need hours or other releases of torch.
NOT_IN_ALL = """all newest demo bench transformers transformers-train transformers-bench vllm-bench
    torches"""


def test_all_runs_every_environment_but_benchmarks() -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")

    def run(name: str) -> set[str]:
        words = settings[f"testenv:{name}"]["commands"].replace("\\", "").split()
        assert words[1] == ".ci/run_environments.py"
        return {*words[2:]}

    assert run("all") == NAMED - {NEWEST, *NOT_IN_ALL.split()}
    prefix, _, kinds = NEWEST[:-1].partition("{")
    assert run("newest") == {"wheels", *(prefix + each for each in kinds.split(","))}


def test_a_row_shows_what_pytest_counted_and_the_first_reason() -> None:
    counted = "===== 3 passed, 2 warnings in 1.20s =====\n\x1b[32m7 passed in 4.02s (0:00:04)\n"
    assert read_outcome(0, counted) == "3 passed, 2 warnings; 7 passed"
    missing = "tests/aarch64/test_isas.py::test_x - Failed: qemu-aarch64 was not found"
    failed = f"FAILED {missing}\nFAILED tests/other.py - more\n== 2 failed, 5 passed in 3.00s ==\n"
    assert read_outcome(1, failed) == f"2 failed, 5 passed; {missing}"
    assert read_outcome(3, "nothing to read") == "exit status 3"
    assert read_outcome(4, "ERROR: name a file\n") == "name a file"


def test_every_environment_runs_whatever_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # A tox of the test, which Python finds in the current folder.
    (tmp_path / "tox.py").write_text(
        "import sys\nprint('4 passed in 0.01s')\n"
        "raise SystemExit('ERROR: no compiler' if sys.argv[-1] == 'bad' else 0)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run_environments.main(["bad", "good"]) == 1
    bad, good = capfd.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(r"bad +failed +\d+  4 passed; no compiler", bad)
    assert re.fullmatch(r"good +ok +\d+  4 passed", good)
