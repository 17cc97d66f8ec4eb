"""PyTorch's headers and libraries, found on disk without importing torch."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import abi, variables

from . import installed
from .errors import BuildError

_PYTHON_VERSION = re.compile(r"^__version__\s*=\s*['\"](\d+)\.(\d+)", re.MULTILINE)
_C_VERSION = re.compile(
    r"^#define TORCH_VERSION_MAJOR (\d+)$.*^#define TORCH_VERSION_MINOR (\d+)$",
    re.MULTILINE | re.DOTALL,
)


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
        BuildError: there is none, it has no C++ headers, or it is too old.
    """
    needed = ".".join(map(str, abi.TORCH_TARGET))
    chosen = os.environ.get(variables.TORCH_DIR)
    folder = Path(chosen) if chosen else installed.find_package("torch")
    if folder is None or not folder.is_dir():
        raise installed.not_found(
            "PyTorch's headers",
            f"{folder or f'the package torch of {sys.executable}'}",
            f"Install torch >= {needed}",
        )
    torch = Torch(folder / "include", folder / "lib")
    version = _version(folder)
    if version is None:
        raise BuildError(
            f"{folder} holds no installed torch: neither version.py nor"
            f" include/torch/headeronly/version.h gives a version; install torch >= {needed}"
        )
    if version < abi.TORCH_TARGET:
        raise BuildError(
            f"torch {version[0]}.{version[1]} in {folder} is too old: plugins are compiled for the"
            f" stable ABI of torch {needed}; install torch >= {needed} and build again"
        )
    for needed_file in (
        torch.include / "torch/csrc/stable/library.h",
        torch.lib / "libtorch_cpu.so",
    ):
        if not needed_file.is_file():
            raise BuildError(
                f"torch in {folder} is incomplete: {needed_file} is missing; install torch"
                f" >= {needed} again"
            )
    return torch


def _version(folder: Path) -> tuple[int, int] | None:
    for name, pattern in (
        ("version.py", _PYTHON_VERSION),
        ("include/torch/headeronly/version.h", _C_VERSION),
    ):
        try:
            match = pattern.search((folder / name).read_text(encoding="utf-8"))
        except OSError:
            continue
        if match is not None:
            return int(match[1]), int(match[2])
    return None
