"""Builds the wheels, and installs them one by one as a user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tqdm import tqdm

from examples.errors import WheelError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def _distributions(*patterns: str) -> dict[str, Path]:
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {tomllib.loads(file.read_text())["project"]["name"]: file.parent for file in files}


PROJECTS = _distributions("contract", "builder", "core", "plugins/*")
"""The distributions and their source folders, in the order in which they are installed."""

FOR_TRANSFORMERS = _distributions(
    "contract",
    "builder",
    "core",
    "plugins/lightning_indexer",
    "plugins/sparse_attention",
    "integrations/transformers",
)
"""Those that models of transformers run on."""


def build_and_install(projects: Mapping[str, Path], folder: Path) -> list[Path]:
    """Build each project's wheel into folder and install it: the first ones build the others.

    Raises WheelError with pip's output when something fails, and outside a virtual environment.
    """
    _uninstall(projects)
    built = []
    with tqdm(projects.items(), unit="wheel", dynamic_ncols=True) as progress:
        for distribution, project in progress:
            progress.set_description(distribution)
            built.append(_build(project, folder))
            _install(distribution, folder)
    return built


def _build(project: Path, folder: Path) -> Path:
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


def _uninstall(distributions: Iterable[str]) -> None:
    # A virtual environment is the example's, to change at will.
    if sys.prefix == sys.base_prefix:
        raise WheelError(
            "the example installs and removes wheels, so it only runs in a virtual environment;"
            " run it by tox, or with --no-install to use what is installed"
        )
    _pip("uninstall", "--yes", *distributions)


def _install(distribution: str, folder: Path) -> None:
    _pip("install", "--no-index", "--find-links", str(folder), distribution)


def _listing() -> str:
    command = Path(sys.executable).with_name("custom-pypto")
    return _run([str(command), "list"]).rstrip()


def install_one_by_one(folder: Path) -> Iterator[tuple[str, str]]:
    """Install core, then op by op; yield each distribution and what `custom-pypto list` prints.

    The contract comes with core, which requires it; the builder is needed for builds alone.
    """
    _uninstall(PROJECTS)
    for distribution, project in PROJECTS.items():
        if project.name not in ("contract", "builder"):
            _install(distribution, folder)
            yield distribution, _listing()


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
