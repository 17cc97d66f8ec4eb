"""The installed wheels that the libraries are built against, found without importing them."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
from pathlib import Path

from custom_pypto_build.errors import BuildError


def package_folder(package: str) -> Path:
    """The folder of an installed top-level package. Raises BuildError when there is none."""
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


def simulator_folder() -> Path:
    """Where the simulator's own sources and headers are."""
    return Path(__file__).parent.parent / "custom_pypto_simulator"


def acl_includes() -> list[Path]:
    """Folders of the ACL headers, which the torch_npu wheel carries."""
    return [package_folder("torch_npu") / "include" / "third_party" / "acl" / "inc"]


def torch_includes() -> list[Path]:
    """Folders of the ATen headers."""
    include = package_folder("torch") / "include"
    return [include, include / "torch" / "csrc" / "api" / "include"]
