"""`_backend.py`, by which the official plugins find custom_pypto_build."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from build_project import PACKAGES

REPOSITORY = Path(__file__).parents[2]
PLUGINS = sorted(path.parent.name for path in REPOSITORY.glob("plugins/*/pyproject.toml"))
BACKEND = REPOSITORY / "plugins" / "add_custom" / "_backend.py"
CORE_PACKAGES = ("custom_pypto_build", "custom_pypto_discovery", "custom_pypto")


class Scratch:
    """A venv with nothing in it but what a test lends it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        venv.create(root, symlinks=True)
        [self.site_packages] = (root / "lib").glob("python3*/site-packages")

    def lend(self, *packages: Path) -> None:
        """Make packages that are installed elsewhere look installed here."""
        for package in packages:
            (self.site_packages / package.name).symlink_to(package)

    def run(
        self, *arguments: str | Path, check: bool = True, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python."""
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [self.root / "bin" / "python", *arguments]
        return subprocess.run(
            command, env={**inherited, **env}, capture_output=True, text=True, check=check
        )


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "venv")


def backend_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(BACKEND, folder)
    return folder


def requires(scratch: Scratch, folder: Path, **env: str) -> list[str]:
    code = (
        f"import sys, json; sys.path.insert(0, {str(folder)!r}); import _backend;"
        "print(json.dumps(_backend.get_requires_for_build_wheel()))"
    )
    names: list[str] = json.loads(scratch.run("-c", code, PATH="", **env).stdout)
    return names


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_official_plugins_have_the_same_backend(plugin: str) -> None:
    file = REPOSITORY / "plugins" / plugin / "_backend.py"
    assert file.read_bytes() == BACKEND.read_bytes()


def test_core_is_asked_for_where_it_is_nowhere(scratch: Scratch, tmp_path: Path) -> None:
    assert requires(scratch, backend_in(tmp_path / "plugin")) == ["custom-pypto-core>=0.1"]


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable", "build_sdist"])
def test_building_without_core_says_what_to_do(scratch: Scratch, tmp_path: Path, hook: str) -> None:
    folder = backend_in(tmp_path / "plugin")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import _backend; _backend.{hook}('d')"
    process = scratch.run("-c", code, check=False)
    assert process.returncode == 1
    assert process.stderr.startswith("error: custom-pypto-core is not installed; run `pip install")


def test_core_is_found_in_the_repository(scratch: Scratch, tmp_path: Path) -> None:
    packages = tmp_path / "core" / "src"
    packages.mkdir(parents=True)
    for name in CORE_PACKAGES:
        (packages / name).symlink_to(PACKAGES / name)
    needs = requires(scratch, backend_in(tmp_path / "plugins" / "tiny"))
    assert "setuptools>=77" in needs


def test_outside_of_a_repository_no_folder_of_others_is_searched(
    scratch: Scratch, tmp_path: Path
) -> None:
    # Where pip and build unpack a source distribution, two folders below one that all may write to.
    stranger = tmp_path / "core" / "src" / "custom_pypto_discovery"
    stranger.mkdir(parents=True)
    (stranger / "__init__.py").write_text("raise AssertionError('imported')")
    unpacked = backend_in(tmp_path / "pip-install-1" / "custom-pypto-tiny_1")
    assert requires(scratch, unpacked) == ["custom-pypto-core>=0.1"]


def test_the_installed_core_is_found(scratch: Scratch, tmp_path: Path) -> None:
    scratch.lend(*(PACKAGES / name for name in CORE_PACKAGES))
    assert "setuptools>=77" in requires(scratch, backend_in(tmp_path / "plugin"))


def test_the_installed_core_is_found_where_isolation_hides_it(
    scratch: Scratch, tmp_path: Path
) -> None:
    scratch.lend(*(PACKAGES / name for name in CORE_PACKAGES))
    # As pip does it.
    hide = "import sys; sys.path[:] = [p for p in sys.path if not p.endswith('site-packages')]"
    (tmp_path / "sitecustomize.py").write_text(hide)
    needs = requires(scratch, backend_in(tmp_path / "plugin"), PYTHONPATH=str(tmp_path))
    assert "setuptools>=77" in needs


def test_torch_is_never_asked_for(scratch: Scratch, tmp_path: Path) -> None:
    scratch.lend(*(PACKAGES / name for name in CORE_PACKAGES))
    needs = requires(scratch, backend_in(tmp_path / "plugin"))
    expected = {"setuptools>=77", "ninja"} | ({"tomli>=2"} if sys.version_info < (3, 11) else set())
    assert set(needs) == expected
