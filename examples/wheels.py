"""Builds the wheels, and installs them one by one as a user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from examples.errors import WheelError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def _distributions(*patterns: str) -> dict[str, Path]:
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {tomllib.loads(file.read_text())["project"]["name"]: file.parent for file in files}


PROJECTS = _distributions("builder", "core", "plugins/*")
"""The distributions and their source folders, in the order in which they are installed."""

INTEGRATIONS = _distributions("integrations/*")


def build(project: Path, folder: Path) -> Path:
    """Build one project's wheel into folder and return its path.

    Raises WheelError with pip's output when the build fails.
    """
    scratch = folder / ".new"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    if not (project / "csrc").is_dir():
        # setuptools would put stale modules from there into the wheel. The plugins' build hook
        # removes what is stale itself, and compiles only what changed.
        shutil.rmtree(project / "build", ignore_errors=True)
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(scratch), str(project))
    (built,) = scratch.glob("*.whl")
    wheel = built.replace(folder / built.name)
    scratch.rmdir()
    return wheel


def uninstall(distributions: Iterable[str]) -> None:
    """Remove distributions from the running environment; absent ones are ignored.

    Raises WheelError outside a virtual environment, which this example may change at will.
    """
    if sys.prefix == sys.base_prefix:
        raise WheelError(
            "the example installs and removes wheels, so it only runs in a virtual environment;"
            " run it by tox, or with --no-install to use what is installed"
        )
    _pip("uninstall", "--yes", *distributions)


def install(distribution: str, folder: Path) -> None:
    """Install one distribution from a folder of wheels, without an index.

    Raises WheelError with pip's output when that fails.
    """
    _pip("install", "--no-index", "--find-links", str(folder), distribution)


def listing() -> str:
    """Return what `custom-pypto list` prints in the running environment."""
    command = Path(sys.executable).with_name("custom-pypto")
    return _run([str(command), "list"]).rstrip()


def install_one_by_one(folder: Path) -> Iterator[tuple[str, str]]:
    """Install core, then op by op; yield each distribution and what `custom-pypto list` prints."""
    uninstall(reversed(PROJECTS))
    for distribution in PROJECTS:
        install(distribution, folder)
        yield distribution, listing()


def _pip(*arguments: str) -> str:
    return _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments])


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise WheelError(
            f"{' '.join(command)} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout
