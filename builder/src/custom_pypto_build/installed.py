"""Packages of the environment that a plugin is built for, torch among them, found on disk.

Nothing of them is imported.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from custom_pypto_contract import abi, guarded, variables

from .errors import BuildError

_PRINT_FOLDERS = """
import importlib.util, sys
spec = importlib.util.find_spec(sys.argv[1])
for folder in (spec.submodule_search_locations or ()) if spec else ():
    print(folder)
"""
_VERSION = re.compile(r"^#define TORCH_VERSION_(?:MAJOR|MINOR) (\d+)$", re.MULTILINE)


def find_package(name: str) -> Path | None:
    """The folder of the package `name`, or None.

    It is the one that this interpreter would import, else the one that it would import if pip did
    not isolate the build. Editable installations are found as others are.
    """
    folders = _of_this_process(name)
    if not folders:
        command = [sys.executable, "-c", _PRINT_FOLDERS, name]
        _, output, _ = guarded.run(command, cwd="/", env=environment())
        folders = output.splitlines()
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


@dataclass(frozen=True)
class Torch:
    """Where the headers and libraries of an installed torch are."""

    include: Path
    lib: Path


def find_torch() -> Torch:
    """The torch to compile against.

    It is the one in ``CUSTOM_PYPTO_TORCH_DIR`` (the folder of the package ``torch``), else the one
    that `find_package` gives.

    Raises:
        BuildError: there is none, it is too old, or it has no C++ headers.
    """
    chosen = os.environ.get(variables.TORCH_DIR)
    folder = Path(chosen) if chosen else find_package("torch")
    if folder is None or not folder.is_dir():
        raise not_found(
            "PyTorch's headers",
            f"{folder or f'the package torch of {sys.executable}'}",
            f"Install torch >= {abi.OLDEST_TORCH}",
        )
    torch = Torch(folder / "include", folder / "lib")
    header = torch.include / "torch/headeronly/version.h"
    stable = torch.include / "torch/csrc/stable/library.h"
    for file in (header, stable, torch.lib / "libtorch_cpu.so"):
        if not file.is_file():
            raise BuildError(
                f"torch in {folder} is too old, or incomplete: {file} is missing; install torch"
                f" >= {abi.OLDEST_TORCH}"
            )
    version = tuple(map(int, _VERSION.findall(header.read_text(encoding="utf-8"))))
    if version < abi.TORCH_TARGET:
        raise BuildError(
            f"torch {'.'.join(map(str, version))} in {folder} is too old: plugins are compiled for"
            f" the stable ABI of torch {abi.OLDEST_TORCH}; install torch >= {abi.OLDEST_TORCH} and"
            " build again"
        )
    return torch
