"""The wheels of this repository: a distribution is found by its folder's being there.

``list FOLDER ...`` prints their names, ``build WHEELHOUSE FOLDER ...`` builds them, and
``install WHEELHOUSE FOLDER ...`` replaces what is installed of them. A FOLDER may be a pattern,
such as ``plugins/*``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
# What plugins are built with: to be installed before they are built.
BUILD_REQUIREMENTS = ("custom-pypto-contract", "custom-pypto-build", "custom-pypto-core")


def find(patterns: Sequence[str]) -> dict[str, Path]:
    """Give the folders that `patterns` match, by the names of their distributions."""
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {_read(file.parent)["project"]["name"]: file.parent for file in files}


def build(wheelhouse: Path, projects: dict[str, Path]) -> None:
    """Build wheels into `wheelhouse`, which then holds nothing else."""
    shutil.rmtree(wheelhouse, ignore_errors=True)
    plugins = {name: path for name, path in projects.items() if _is_plugin(path)}
    others = {name: path for name, path in projects.items() if name not in plugins}
    for path in others.values():
        # With what setuptools left there, a module that was renamed would be in the wheel twice.
        shutil.rmtree(path / "build", ignore_errors=True)
    into = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheelhouse)
    _pip(*into, *others.values())
    needed = (name for name in BUILD_REQUIREMENTS if name in others)
    _pip(*_from(wheelhouse), "--no-deps", "--force-reinstall", *needed)
    _pip(*into, *plugins.values())


def install(wheelhouse: Path, projects: dict[str, Path]) -> None:
    """Replace what is installed of `projects` by their wheels."""
    _pip("uninstall", "--quiet", "--yes", *projects)
    _pip(*_from(wheelhouse), *projects)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("list", "build", "install"):
        command = commands.add_parser(name)
        if name != "list":
            command.add_argument("wheelhouse", type=Path)
        command.add_argument("folders", nargs="+")
    options = parser.parse_args()
    projects = find(options.folders)
    if options.command == "list":
        print("\n".join(projects))
    elif options.command == "build":
        build(options.wheelhouse, projects)
    else:
        install(options.wheelhouse, projects)


def _read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def _is_plugin(folder: Path) -> bool:
    return bool(_read(folder)["build-system"]["build-backend"] == "custom_pypto_build")


def _from(wheelhouse: Path) -> tuple[str | Path, ...]:
    return "install", "--no-index", "--find-links", wheelhouse


def _pip(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
