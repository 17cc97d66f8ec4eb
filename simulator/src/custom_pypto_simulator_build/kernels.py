"""Libraries of simulated aclnn kernels, in the layout of an installed opp package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from custom_pypto_build import simulated_kernels

from .cache import cache_folder, locked
from .libraries import LINK_FLAGS, build_libraries, compile_flags, digest, precompile_torch


def build_kernels(projects: Iterable[str | Path], folder: str | Path) -> dict[str, Path]:
    """Builds the simulated kernels that plugins name, into an opp tree.

    ``projects`` are folders with a ``[tool.custom-pypto.simulated-kernels]`` in their
    pyproject.toml; what several of them name for one vendor becomes one library. ``folder`` can be
    ASCEND_OPP_PATH, and each of the folders returned, by vendor, an entry of
    ASCEND_CUSTOM_OPP_PATH. Compiles what changed since it was last called. Raises BuildError.
    """
    roots = [Path(project).resolve() for project in projects]
    libraries = build_libraries()
    with locked(cache_folder()):
        aclnn_flags = precompile_torch()
    toolchain = simulated_kernels.Toolchain(
        compile_flags=compile_flags(),
        aclnn_flags=aclnn_flags,
        link_flags=(*LINK_FLAGS, *libraries.needed_by_kernels),
    )
    scratch = cache_folder() / "kernels" / digest([*map(str, roots), *toolchain.compile_flags])
    with locked(scratch):
        return simulated_kernels.build(roots, Path(folder).resolve(), scratch, toolchain)
