"""Libraries of simulated aclnn kernels, in the layout of an installed opp package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from custom_pypto_build import simulated_kernels
from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError
from custom_pypto_contract import guarded

from .cache import cache_folder, locked
from .libraries import LINK_FLAGS, build_libraries, compile_flags, digest, objects_folder


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
        aclnn_flags = _precompile_aten()
    toolchain = simulated_kernels.Toolchain(
        compile_flags=compile_flags(),
        aclnn_flags=aclnn_flags,
        link_flags=(*LINK_FLAGS, *libraries.needed_by_kernels),
    )
    scratch = cache_folder() / "kernels" / digest([*map(str, roots), *toolchain.compile_flags])
    with locked(scratch):
        return simulated_kernels.build(roots, Path(folder).resolve(), scratch, toolchain)


def _precompile_aten() -> tuple[str, ...]:
    """The flags that include ATen's header, which takes seconds to parse, parsed once.

    Two processes must not call this at a time. A compiler with other flags parses it again. Raises
    BuildError.
    """
    folder = objects_folder()
    header = folder / "aten.h"
    precompiled = folder / "aten.h.gch"
    if not precompiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        header.write_text("#include <ATen/ATen.h>\n", encoding="utf-8")
        unfinished = folder / "aten.h.unfinished"
        command = [*find_compiler().command, *compile_flags(), "-xc++-header"]
        command += [str(header), "-o", str(unfinished)]
        status, _, errors = guarded.run(command)
        if status != 0:
            raise BuildError(f"the headers of torch cannot be compiled:\n{errors}")
        unfinished.rename(precompiled)
    return ("-include", str(header))
