"""Packages of the environment that a plugin is built for, found without importing them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .errors import BuildError

_PRINT_FOLDERS = """
import importlib.util, sys
spec = importlib.util.find_spec(sys.argv[1])
for folder in (spec.submodule_search_locations or ()) if spec else ():
    print(folder)
"""


def find_package(name: str) -> Path | None:
    """The folder of the package `name`, or None.

    It is the one that this interpreter would import, else the one that it would import if pip did
    not isolate the build. Editable installations are found as others are.
    """
    folders = _of_this_process(name)
    if not folders:
        done = subprocess.run(
            [sys.executable, "-c", _PRINT_FOLDERS, name],
            cwd="/",
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        folders = done.stdout.splitlines()
    return Path(folders[0]) if folders else None


def environment() -> dict[str, str]:
    """The environment variables with which this interpreter sees what is installed.

    pip isolates a build by PYTHONPATH, which leads to a module that takes the installed packages
    off sys.path.
    """
    is_isolated = not (_of_this_process("torch") and _of_this_process("custom_pypto"))
    dropped = ("PYTHONPATH", "PYTHONNOUSERSITE") if is_isolated else ()
    return {name: value for name, value in os.environ.items() if name not in dropped}


def not_found(what: str, looked_for: str, remedy: str) -> BuildError:
    """The error that `what` is not in this environment; `remedy` says what to install."""
    return BuildError(
        f"{what} were not found; looked for\n  {looked_for}\n"
        f"{remedy} in the environment that the plugin is built for. If it is there, the build runs"
        " in an environment of its own (`python -m build`, `uv`): turn that off (--no-isolation,"
        " --no-build-isolation)"
    )


def _of_this_process(name: str) -> list[str]:
    spec = find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec is not None else []
