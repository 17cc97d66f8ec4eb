"""How the simulated libraries, and simulated kernels, are compiled and linked."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import shutil
from collections.abc import Iterable
from pathlib import Path

from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError

SOURCES = Path(__file__).parent.parent / "custom_pypto_simulator"
"""Where the simulator's own sources and headers are."""

LINK_FLAGS = ("-Wl,-z,now",)


def compile_flags() -> tuple[str, ...]:
    """The flags of all sources. Raises BuildError when torch or torch_npu is not installed."""
    torch = package_folder("torch") / "include"
    # The torch_npu wheel carries the ACL headers.
    acl = package_folder("torch_npu") / "include" / "third_party" / "acl" / "inc"
    include = SOURCES / "include"
    # Recorded in each library, see abi.h.
    abi = f"torch {version('torch')}, simulator headers {digest(read_files(include))[:12]}"
    return (
        *("-std=c++20", "-O1", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror"),
        *("-fvisibility=hidden", "-fvisibility-inlines-hidden", "-DFUNC_VISIBILITY"),
        f'-DCUSTOM_PYPTO_SIM_ABI="{abi}"',
        f"-I{include}",
        f"-I{include / 'ascendc'}",
        *(f"-isystem{each}" for each in (torch, torch / "torch" / "csrc" / "api" / "include", acl)),
    )


def compiler_identity() -> str:
    """A text that changes when the compiler is replaced. Raises BuildError."""
    program = find_compiler().command[0]
    path = Path(shutil.which(program) or program).resolve()
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def package_folder(package: str) -> Path:
    """The folder of an installed package, which is not imported. Raises BuildError."""
    spec = importlib.machinery.PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(
            f"{package} is not installed in this environment; the simulator is built against its "
            f"headers. Install it: pip install --no-deps {package}==2.13.0"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def version(distribution: str) -> str:
    """The installed version. Raises BuildError when there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise BuildError(f"{distribution} is not installed in this environment") from None


def digest(texts: Iterable[str]) -> str:
    """A short hash of `texts`."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def read_files(folder: Path) -> list[str]:
    """The texts of the files below `folder`."""
    return [path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()]
