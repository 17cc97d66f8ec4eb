"""The simulated CANN libraries: built against the installed wheels, and kept in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_build import source_files
from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError
from custom_pypto_build.ninja import NinjaFile, run_ninja

from .cache import cache_folder, locked
from .precompiled import objects_folder, precompile_aten
from .toolchain import LINK_FLAGS, SOURCES, compile_flags, digest, read_files, torch_libraries

# Folder of sources by soname, in load order.
_RUNTIME = {
    "libascendcl.so": "ascendcl",
    "libnnopbase.so": "nnopbase",
    "libacl_op_compiler.so": "op_compiler",
    "libhccl.so": "hccl",
    "libacl_tdt_channel.so": "empty",
    "libge_runner.so": "ge",
    "libgraph.so": "empty",
    "libfmk_parser.so": "empty",
    "libascend_protobuf.so": "empty",
}
_OPS = "libopapi.so"


@dataclass(frozen=True)
class Libraries:
    """Paths of the built libraries.

    ``runtime`` must be loaded before torch_npu, in this order, and ``ops`` once torch is.
    """

    runtime: tuple[Path, ...]
    ops: Path

    @property
    def needed_by_kernels(self) -> tuple[str, ...]:
        """The libraries of simulated kernels: libascendcl.so, libnnopbase.so and torch's."""
        return (*map(str, self.runtime[:2]), *torch_libraries())


def build_libraries() -> Libraries:
    """Every simulated library, built now or found in the cache. Raises BuildError."""
    cache = cache_folder()
    flags = compile_flags()
    scratch = objects_folder()
    folder = cache / "libraries" / digest([scratch.name, *read_files(SOURCES / "csrc")])
    libraries = Libraries(tuple(folder / soname for soname in _RUNTIME), folder / _OPS)
    if not libraries.ops.exists():
        with locked(cache), ThreadPoolExecutor() as pool:
            # By one process, which would else leave the other cores idle.
            precompiled = pool.submit(precompile_aten)
            for path, sources in zip(libraries.runtime, _RUNTIME.values(), strict=True):
                _build(path, sources, scratch, flags, [])
            flags += precompiled.result()
            # The last one: it says that all are there.
            _build(libraries.ops, "opapi", scratch, flags, libraries.needed_by_kernels)
    return libraries


def _build(
    library: Path, sources: str, scratch: Path, flags: Sequence[str], needed: Sequence[str]
) -> None:
    command = find_compiler().command
    file = NinjaFile(scratch / library.name, [*command, *flags])
    for source in _together(SOURCES / "csrc" / sources, scratch / library.name):
        file.compile(str(source), [])
    built = scratch / library.name / library.name
    link = [*command, "-shared", *LINK_FLAGS, f"-Wl,-soname,{library.name}"]
    file.link(str(built), link, needed)
    try:
        run_ninja(file.write(), scratch, is_captured=True)
    except BuildError as error:
        raise BuildError(f"the simulated {library.name}: {error}") from None
    source_files.replace(built, library)


def _together(sources: Path, scratch: Path) -> list[Path]:
    """Files that include the sources, and the sources that no other can be compiled with.

    Headers take most of the time, so they are parsed twice a library, for two cores.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    every = sorted(sources.glob("*.cpp"))
    files = {scratch / "even.cpp": every[::2], scratch / "odd.cpp": every[1::2]}
    for file, included in files.items():
        text = "".join(f'#include "{source}"\n' for source in included)
        file.write_text(text, encoding="utf-8")
    return [*files, *sorted((sources / "alone").glob("*.cpp"))]
