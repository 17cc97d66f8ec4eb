"""PyTorch's headers and libraries, found on disk without importing torch."""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import manifest

from .errors import BuildError

VARIABLE = "CUSTOM_PYPTO_TORCH_DIR"
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
    this interpreter would import, else the one installed for it: pip hides installed packages from
    an isolated build, but sysconfig still says where they are.

    Raises:
        BuildError: there is none, it has no C++ headers, or it is too old.
    """
    folders = _candidates()
    folder = next((f for f in folders if f.is_dir()), None)
    if folder is None:
        raise BuildError(_not_found(folders))
    torch = Torch(folder / "include", folder / "lib")
    needed = ".".join(map(str, manifest.TORCH_TARGET))
    version = _version(folder)
    if version is None:
        raise BuildError(
            f"{folder} holds no installed torch: neither version.py nor"
            f" include/torch/headeronly/version.h gives a version; install torch >= {needed}"
        )
    if version < manifest.TORCH_TARGET:
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


def _candidates() -> list[Path]:
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return [Path(chosen)]
    folders = []
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.submodule_search_locations:
        folders += list(spec.submodule_search_locations)
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if _sees_system_packages():
        places += [*site.getsitepackages([sys.base_prefix]), site.getusersitepackages()]
    folders += [str(Path(place, "torch")) for place in places]
    return [Path(folder) for folder in dict.fromkeys(folders)]


def _sees_system_packages() -> bool:
    if sys.prefix == sys.base_prefix:
        return True
    try:
        text = Path(sys.prefix, "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^include-system-site-packages *= *true", text, re.M | re.I) is not None


def _not_found(folders: list[Path]) -> str:
    needed = ".".join(map(str, manifest.TORCH_TARGET))
    places = "\n".join(f"  {folder}" for folder in folders)
    return (
        f"PyTorch's headers were not found; looked for\n{places}\n"
        f"Install torch >= {needed} in the environment that the plugin is built for. If it is"
        " there, the build runs in an environment of its own (`python -m build`, `uv`): turn that"
        f" off (--no-isolation, --no-build-isolation), or set {VARIABLE} to the folder of an"
        " installed torch package"
    )


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
