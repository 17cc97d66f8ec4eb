"""Every command of docs/systems.md can be run, and selects tests."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path

import custom_pypto_cli
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "systems.md").read_text("utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")][1:]
COMMANDS = [shlex.split(row[-1].strip(" `")) for row in ROWS]
# Collecting these needs a simulator.
ON_NPU = Path("tests") / "npu"


def commands(program: str) -> list[list[str]]:
    return [each for each in COMMANDS if each[0] == program]


def selections(*, on_npu: bool) -> list[tuple[Path, str]]:
    """Return the file or folder of each pytest command, and the word of its -k."""
    found = []
    for _, path, *options in commands("pytest"):
        assert options[::2] in ([], ["-k"])
        if (ON_NPU in Path(path).parents) == on_npu:
            found.append((Path(path), "".join(options[1:])))
    return found


def test_each_row_has_a_command() -> None:
    assert {command[0] for command in COMMANDS} == {"pytest", "custom-pypto", "tox"}


def test_commands_of_pytest_select_tests() -> None:
    everything = selections(on_npu=False)
    assert all((ROOT / path).exists() for path, _ in everything)
    selected = [(path, word) for path, word in everything if word]
    paths = {str(path) for path, _ in selected}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *paths]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    for path, word in selected:
        names = [line for line in run.stdout.splitlines() if line.startswith(str(path))]
        assert any(word.lower() in name.lower() for name in names), (path, word)


@pytest.mark.parametrize(("path", "word"), selections(on_npu=True))
def test_commands_on_an_npu_name_existing_tests(path: Path, word: str) -> None:
    code = (ROOT / path).read_text("utf-8")
    if path.name == "test_scripts.py":
        is_script = (ROOT / ON_NPU / "scripts" / f"{word}.py").is_file()
        assert is_script or f'    "{word}": (' in code
    elif not re.search(rf"^def test_\w*{word}", code, re.MULTILINE):
        # Its cases are the ops.
        assert (ROOT / "plugins" / word).is_dir()
        assert "from ops import" in code


@pytest.mark.parametrize("command", commands("custom-pypto"))
def test_commands_of_custom_pypto_run(command: list[str]) -> None:
    assert custom_pypto_cli.main(command[1:]) == 0


@pytest.mark.parametrize("command", commands("tox"))
def test_environments_of_tox_are_there(command: list[str]) -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    _, option, environments = command
    assert option == "-e"
    for each in environments.split(","):
        assert f"testenv:{each}" in settings
