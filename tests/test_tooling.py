"""The files that configure the repository's tools agree with each other."""

from __future__ import annotations

import configparser
import re
import subprocess
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


def test_tox_tests_every_plugin() -> None:
    plugins = {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}
    tox = (ROOT / "tox.ini").read_text()
    config = configparser.ConfigParser()
    config.read(ROOT / "pytest.ini")
    tested = config["pytest"]["testpaths"].split()
    for plugin in plugins:
        assert f"./plugins/{plugin}" in tox
        assert f"custom-pypto-{plugin.replace('_', '-')}" in tox
        assert f"plugins/{plugin}/tests" in tested


def test_tox_tests_every_integration() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "pytest.ini")
    tested = config["pytest"]["testpaths"].split()
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    integrations = {path.parent.name for path in ROOT.glob("integrations/*/pyproject.toml")}
    assert integrations
    for integration in integrations:
        assert f"./integrations/{integration}" in tox["testenv:wheels"]["commands"]
        assert f"custom-pypto-{integration}" in tox["tox"]["integrations"].split()
        assert f"integrations/{integration}/tests" in tested
    assert "{[tox]integrations}" in tox["testenv:tests"]["commands_pre"]


def test_mypy_sees_every_package() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "mypy.ini")
    files = [name.strip(" \n") for name in config["mypy"]["files"].split(",")]
    for pattern in ("plugins/*/src", "integrations/*/src"):
        assert {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)} < set(files)


def test_ci_runs_the_command_of_the_readme() -> None:
    command = "python3 -m pip install tox && tox"
    assert command in (ROOT / ".ci" / "run").read_text()
    assert command in (ROOT / "README.md").read_text()


def test_ci_script_is_sound_bash() -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)
