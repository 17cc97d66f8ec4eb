"""Libraries of simulated aclnn kernels, in the layout of an installed opp package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from custom_pypto_build import simulated_kernels

from .abi import abi_flag
from .cache import cache_folder, locked
from .compiler import FLAGS, digest
from .installed import acl_includes, simulator_folder, torch_includes
from .libraries import build_libraries, kernel_dependencies


def build_kernels(projects: Iterable[str | Path], folder: str | Path) -> dict[str, Path]:
    """Builds the simulated kernels that plugins name, into an opp tree.

    ``projects`` are folders with a ``[tool.custom-pypto.simulated-kernels]`` in their
    pyproject.toml; what several of them name for one vendor becomes one library. ``folder`` can be
    ASCEND_OPP_PATH, and each of the folders returned, by vendor, an entry of
    ASCEND_CUSTOM_OPP_PATH. Compiles what changed since it was last called. Raises BuildError.
    """
    roots = [Path(project).resolve() for project in projects]
    toolchain = kernel_toolchain()
    scratch = cache_folder() / "kernels" / digest([*map(str, roots), *toolchain.compile_flags])
    scratch.mkdir(parents=True, exist_ok=True)
    with locked(scratch):
        return simulated_kernels.build(roots, Path(folder).resolve(), scratch, toolchain)


def kernel_toolchain() -> simulated_kernels.Toolchain:
    """The toolchain for core's build hook. Builds the simulated libraries. Raises BuildError."""
    return simulated_kernels.Toolchain(
        compile_flags=(
            *FLAGS,
            abi_flag(),
            f"-I{simulator_folder() / 'include'}",
            f"-I{simulator_folder() / 'include' / 'ascendc'}",
            *(f"-isystem{folder}" for folder in (*torch_includes(), *acl_includes())),
        ),
        link_flags=("-Wl,-z,now", *map(str, kernel_dependencies(build_libraries().runtime))),
    )
