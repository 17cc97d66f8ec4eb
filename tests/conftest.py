"""Fixtures of the cross-package tests: wheels, and environments to install them into."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import distributions
import pytest
from fork_server import ForkServer
from repository import copy_sources
from scratch import Scratch, create, lend

SOURCES = distributions.find(("contract", "builder", "core", "blocks", "testing", "plugins/*"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Find the wheel of a distribution of this repository, by its name with ``_``.

    It is in the folder that CUSTOM_PYPTO_WHEELS names; without that variable it is built, once.
    """
    given = os.environ.get("CUSTOM_PYPTO_WHEELS")
    folder = Path(given).resolve() if given else tmp_path_factory.mktemp("wheels")
    sources = tmp_path_factory.mktemp("sources")

    def find(name: str) -> Path:
        found = sorted(folder.glob(f"{name}-*.whl"))
        if not found and not given:
            source = SOURCES[name.replace("_", "-")]
            copy = copy_sources(source, sources / source.name)
            pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
            subprocess.run([*pip, "--wheel-dir", folder, copy], check=True)
            found = sorted(folder.glob(f"{name}-*.whl"))
        assert len(found) == 1, f"{len(found)} wheels of {name} in {folder}: {found}"
        return found[0]

    return find


@pytest.fixture(scope="session")
def new_environment(
    tmp_path_factory: pytest.TempPathFactory, wheel: Callable[[str], Path]
) -> Callable[..., Scratch]:
    """Make an environment with core and the distributions that are named."""
    lent = lend(tmp_path_factory.mktemp("lent") / "site-packages")

    def make(*names: str) -> Scratch:
        made = create(tmp_path_factory.mktemp("environment") / "venv", lent)
        made.install(*map(wheel, ("custom_pypto_contract", "custom_pypto_core", *names)))
        return made

    return make


@pytest.fixture
def environment(new_environment: Callable[..., Scratch]) -> Scratch:
    """A new environment with core and no plugin."""
    return new_environment()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs Python with torch imported, and the installed plugins not yet."""
    # torch warns of its own deprecations; a warning of ours is an error.
    options = ("-W", "error", "-W", "ignore::DeprecationWarning")
    started = ForkServer([], tmp_path_factory.mktemp("server"), options=options)
    yield started
    started.close()
