"""The wheels of this repository: every folder with a pyproject.toml is a distribution.

``list FOLDER ...`` prints their names, ``build WHEELHOUSE FOLDER ...`` builds them, and
``install WHEELHOUSE FOLDER ...`` replaces the installed ones. A FOLDER may be a pattern, such as
``plugins/*``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
# Every plugin is built with these.
_TOOLS = tuple(f"custom-pypto-{name}" for name in ("contract", "build", "core", "blocks"))
_INSTALL = ("install", "--quiet", "--no-index", "--find-links")


def find(patterns: Sequence[str]) -> dict[str, Path]:
    """Return the folders that `patterns` match, by the names of their distributions."""
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {_read(file.parent)["project"]["name"]: file.parent for file in files}


def build(wheelhouse: Path, projects: dict[str, Path]) -> None:
    """Replace the wheels of `projects` in `wheelhouse`, and print each."""
    for required in build_requirements(projects):
        _build_all(wheelhouse, required)
        pip(*_INSTALL, wheelhouse, "--no-deps", "--force-reinstall", *required)
        projects = {name: projects[name] for name in projects if name not in required}
    _build_all(wheelhouse, projects)


def build_requirements(projects: dict[str, Path]) -> list[dict[str, Path]]:
    """Return those of `projects` that others are built with: tools, then plugins with headers."""
    named = {each for path in projects.values() for each in _read(path)["build-system"]["requires"]}
    plugins = sorted(projects.keys() & named.difference(_TOOLS))
    stages = ([name for name in _TOOLS if name in projects], plugins)
    return [{name: projects[name] for name in stage} for stage in stages if stage]


def _build_all(wheelhouse: Path, projects: dict[str, Path]) -> None:
    # Two at once: much of a build keeps one core busy.
    with ThreadPoolExecutor(2) as pool:
        builds = [pool.submit(_build_one, wheelhouse, *project) for project in projects.items()]
        for each in builds:
            each.result()


def _build_one(wheelhouse: Path, name: str, folder: Path) -> None:
    if not is_plugin(folder):
        # setuptools would put stale modules from there into the wheel.
        shutil.rmtree(folder / "build", ignore_errors=True)
    wheels = f"{name.replace('-', '_')}-*.whl"
    for old in wheelhouse.glob(wheels):
        old.unlink()
    command = ("wheel", "--quiet", "--no-build-isolation", "--no-deps")
    pip(*command, "--wheel-dir", wheelhouse, folder)
    (wheel,) = wheelhouse.glob(wheels)
    print(f"  {wheel.stat().st_size / 1024:7.0f} KiB  {wheel}", flush=True)


def install(wheelhouse: Path, projects: dict[str, Path]) -> None:
    """Replace the installed `projects` by their wheels."""
    installed = {each.metadata["Name"] for each in metadata.distributions()}
    if found := installed.intersection(projects):
        pip("uninstall", "--quiet", "--yes", *found)
    pip(*_INSTALL, wheelhouse, *projects)


def main() -> None:
    """Run the command line."""
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


def pip(*arguments: str | Path) -> None:
    """Run pip; when it fails, end with its status."""
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def _read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def is_plugin(folder: Path) -> bool:
    """Whether the folder is built by custom_pypto_build."""
    return bool(_read(folder)["build-system"]["build-backend"] == "custom_pypto_build")


if __name__ == "__main__":
    main()
