"""The files that configure the repository's tools agree with each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_pre_commit_uses_the_version_of_tox(tool: str) -> None:
    pin = re.compile(rf"\b{tool}==([\w.]+)")
    hooks = set(pin.findall((ROOT / ".pre-commit-config.yaml").read_text()))
    tox = set(pin.findall((ROOT / "tox.ini").read_text()))
    assert hooks == tox
    assert len(hooks) == 1


def test_distributions_are_found_by_their_folders(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "distributions.py", tmp_path / ".ci")
    for name in ("new_op", "other"):
        folder = tmp_path / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "acme-{name}"\n')
    command = [sys.executable, script, "list", "plugins/*"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["acme-new_op", "acme-other"]


def test_ci_runs_the_command_of_the_readme() -> None:
    command = "python3 -m pip install tox && tox"
    assert command in (ROOT / ".ci" / "run").read_text()
    assert command in (ROOT / "README.md").read_text()


def test_ci_script_is_sound_bash() -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


def test_the_workflows_run_environments_of_tox() -> None:
    environments = set(re.findall(r"^\[testenv:(\S+)\]", (ROOT / "tox.ini").read_text(), re.M))
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        (names,) = re.findall(r"\btox -e (\S+)", workflow.read_text())
        assert set(names.split(",")) <= environments
