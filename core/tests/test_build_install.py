"""Real pip, with and without build isolation, on a repository of core and one plugin."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from build_project import PACKAGES, SOURCES, Project, tiny_project
from custom_pypto_build.ninja import find_ninja
from custom_pypto_contract import manifest
from test_build_backend import BACKEND, CORE_PACKAGES, REPOSITORY, Scratch

Pip = Callable[..., None]


def lend_setuptools(scratch: Scratch) -> None:
    folder = installed("setuptools").parent
    # tomli is what Python 3.10 has in place of tomllib.
    scratch.lend(*folder.glob("setuptools*"), folder / "_distutils_hack", *folder.glob("tomli*"))


def installed(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A venv in which torch is installed."""
    made = Scratch(tmp_path / "venv")
    made.lend(installed("torch"))
    return made


@pytest.fixture
def pip(scratch: Scratch) -> Pip:
    """pip, working on the scratch environment."""
    ninja = find_ninja()
    assert ninja is not None
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CUSTOM_PYPTO_TORCH_DIR")}
    env["PIP_NO_COMPILE"] = "1"
    env["PATH"] = os.pathsep.join([str(Path(ninja).parent), env["PATH"]])

    def run(*arguments: str | Path) -> None:
        python = scratch.root / "bin" / "python"
        command = [sys.executable, "-m", "pip", "--python", python, *arguments]
        process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stdout + process.stderr

    return run


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of core and one plugin, laid out as this one."""
    root = tmp_path / "repository"
    ignored = shutil.ignore_patterns("build", "tests", "*.egg-info", "__pycache__")
    shutil.copytree(REPOSITORY / "core", root / "core", ignore=ignored)
    backend_project(root / "plugins" / "tiny")
    return root


def backend_project(root: Path) -> Project:
    project = tiny_project(root, SOURCES)
    text = (root / "pyproject.toml").read_text()
    for before, after in (
        ('requires = ["custom-pypto-core", "ninja"]', 'requires = ["setuptools>=77", "ninja"]'),
        ('"custom_pypto_build"', '"_backend"\nbackend-path = ["."]'),
    ):
        assert before in text
        text = text.replace(before, after)
    project.write("pyproject.toml", text)
    shutil.copy(BACKEND, root)
    return project


def the_plugin(scratch: Scratch) -> manifest.Manifest:
    return manifest.read(scratch.site_packages / "custom_pypto_tiny" / manifest.FILE_NAME)


def test_core_and_plugin_install_in_one_command_without_isolation(
    scratch: Scratch, pip: Pip, repository: Path
) -> None:
    lend_setuptools(scratch)
    plugin = repository / "plugins" / "tiny"
    pip("install", "--no-deps", "--no-build-isolation", repository / "core", plugin)
    assert the_plugin(scratch).name == "tiny"
    assert (scratch.site_packages / "custom_pypto/core/include/custom_pypto/plugin.h").is_file()


def test_core_and_plugin_install_in_one_command_with_isolation(
    scratch: Scratch, pip: Pip, repository: Path
) -> None:
    pip("install", "--no-deps", repository / "core", repository / "plugins" / "tiny")
    assert the_plugin(scratch).name == "tiny"


def test_a_source_distribution_installs_with_isolation_where_core_is_installed(
    scratch: Scratch, pip: Pip, tmp_path: Path
) -> None:
    scratch.lend(*(PACKAGES / name for name in CORE_PACKAGES))
    project = backend_project(tmp_path / "elsewhere")
    archive = project.hook("build_sdist", tmp_path)
    pip("install", "--no-deps", tmp_path / archive)
    assert the_plugin(scratch).name == "tiny"


def test_an_editable_install_is_removed_with_pip(
    scratch: Scratch, pip: Pip, repository: Path
) -> None:
    lend_setuptools(scratch)
    plugin = repository / "plugins" / "tiny"
    code = "import importlib.util as u; print(u.find_spec('custom_pypto_tiny'))"
    pip("install", "--no-deps", "--no-build-isolation", "--editable", plugin)
    assert str(plugin / "src") in scratch.run("-c", code).stdout
    pip("uninstall", "--yes", "custom-pypto-tiny")
    assert scratch.run("-c", code).stdout.strip() == "None"
