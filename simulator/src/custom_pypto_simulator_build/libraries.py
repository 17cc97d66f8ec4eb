"""The simulated CANN libraries: built against the installed wheels, and kept in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_build import source_files
from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError
from custom_pypto_build.ninja import NinjaFile, run_ninja

from .cache import cache_folder, locked
from .toolchain import (
    LINK_FLAGS,
    SOURCES,
    compile_flags,
    compiler_identity,
    digest,
    package_folder,
    read_files,
    version,
)

_CANN = "libascendcl.so"
_RUNTIME = {
    _CANN: "runtime",
    "libge_runner.so": "ge",
    # These have no functions of their own: what is looked up in them is found in _CANN.
    **dict.fromkeys(("libnnopbase.so", "libacl_op_compiler.so", "libhccl.so"), ""),
    **dict.fromkeys(("libacl_tdt_channel.so", "libgraph.so", "libfmk_parser.so"), ""),
    "libascend_protobuf.so": "",
}
"""Folder of sources by soname, in load order."""
_OF_TORCH = ("libtorch_cpu.so", "libc10.so")
_OPS = "libopapi.so"


@dataclass(frozen=True)
class Libraries:
    """Paths of the built libraries.

    They must be loaded before torch_npu, in this order.
    """

    runtime: tuple[Path, ...]
    of_torch: tuple[Path, ...]
    ops: Path

    @property
    def needed_by_kernels(self) -> tuple[str, ...]:
        """The libraries of simulated kernels: libascendcl.so and torch's."""
        return tuple(map(str, (self.runtime[0], *self.of_torch)))


def objects_folder() -> Path:
    """The folder of what this compiler makes for these wheels. Raises BuildError."""
    toolchain = digest([compiler_identity(), version("torch_npu"), *compile_flags()])
    return cache_folder() / "objects" / toolchain


def build_libraries() -> Libraries:
    """Every simulated library, built now or found in the cache. Raises BuildError."""
    cache = cache_folder()
    scratch = objects_folder()
    folder = cache / "libraries" / digest([scratch.name, *read_files(SOURCES / "csrc")])
    of_torch = tuple(package_folder("torch") / "lib" / name for name in _OF_TORCH)
    libraries = Libraries(tuple(folder / soname for soname in _RUNTIME), of_torch, folder / _OPS)
    if not libraries.ops.exists():
        with locked(cache):
            for path, sources in zip(libraries.runtime, _RUNTIME.values(), strict=True):
                _build(path, sources, scratch, [] if path.name == _CANN else [str(folder / _CANN)])
            # The last one: it says that all are there.
            _build(libraries.ops, "opapi", scratch, libraries.needed_by_kernels)
    return libraries


def _build(library: Path, sources: str, scratch: Path, needed: Sequence[str]) -> None:
    command = find_compiler().command
    file = NinjaFile(scratch / library.name, [*command, *compile_flags()])
    for source in _together(SOURCES / "csrc" / sources, scratch / library.name) if sources else ():
        file.compile(str(source), [])
    built = scratch / library.name / library.name
    link = [*command, "-shared", *LINK_FLAGS, f"-Wl,-soname,{library.name}"]
    file.link(str(built), link, ["-Wl,--no-as-needed", *needed])
    try:
        run_ninja(file.write(), scratch, is_captured=True)
    except BuildError as error:
        raise BuildError(f"the simulated {library.name}: {error}") from None
    source_files.replace(built, library)


def _together(sources: Path, scratch: Path) -> list[Path]:
    """A file that includes the sources, and the sources that no other can be compiled with.

    Headers take most of the time, so they are parsed once.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    together = scratch / "together.cpp"
    lines = [f'#include "{source}"\n' for source in sorted(sources.glob("*.cpp"))]
    together.write_text("".join(lines), encoding="utf-8")
    return [together, *sorted((sources / "alone").glob("*.cpp"))]
