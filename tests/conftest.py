"""What the cross-package tests share: wheels, and environments to install them into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import distributions
import pytest
import scratch

SOURCES = distributions.find(("contract", "builder", "core", "plugins/*"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the wheel of a distribution of this repository, by its name with ``_``.

    It comes from the folder that CUSTOM_PYPTO_WHEELS names; without that it is built, once.
    """
    given = os.environ.get("CUSTOM_PYPTO_WHEELS")
    folder = Path(given).resolve() if given else tmp_path_factory.mktemp("wheels")
    sources = tmp_path_factory.mktemp("sources")

    def find(name: str) -> Path:
        found = sorted(folder.glob(f"{name}-*.whl"))
        if not found and not given:
            _build(SOURCES[name.replace("_", "-")], sources, folder)
            found = sorted(folder.glob(f"{name}-*.whl"))
        assert len(found) == 1, f"{len(found)} wheels of {name} in {folder}: {found}"
        return found[0]

    return find


@pytest.fixture(scope="session")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what every scratch environment may import."""
    return scratch.lend(tmp_path_factory.mktemp("lent") / "site-packages")


@pytest.fixture
def environment(tmp_path: Path, lent: Path, wheel: Callable[[str], Path]) -> scratch.Scratch:
    """Give a new environment with core and no plugin."""
    made = scratch.create(tmp_path / "venv", lent)
    made.install(wheel("custom_pypto_contract"), wheel("custom_pypto_core"))
    return made


def _build(source: Path, sources: Path, wheels: Path) -> None:
    # A copy: two test runs that share this checkout would build in each other's folders.
    skipped = shutil.ignore_patterns("build", "*.egg-info", "*.so", "__pycache__")
    copy = shutil.copytree(source, sources / source.name, ignore=skipped)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", wheels, copy], check=True)
