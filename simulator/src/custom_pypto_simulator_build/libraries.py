"""The simulated CANN libraries: built against the installed wheels, and kept in the cache."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
    read_files,
    torch_libraries,
    version,
)

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
    toolchain = digest([compiler_identity(), version("torch_npu"), *flags])
    folder = cache / "libraries" / digest([toolchain, *read_files(SOURCES / "csrc")])
    libraries = Libraries(tuple(folder / soname for soname in _RUNTIME), folder / _OPS)
    if not libraries.ops.exists():
        scratch = cache / "objects" / toolchain
        with locked(cache), ThreadPoolExecutor() as pool:
            scratch.mkdir(parents=True, exist_ok=True)
            # By one process, which would else leave the other cores idle.
            precompiled = pool.submit(_precompile, scratch, flags)
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
    for source in sorted((SOURCES / "csrc" / sources).glob("*.cpp")):
        file.compile(str(source), [])
    built = scratch / library.name / library.name
    link = [*command, "-shared", *LINK_FLAGS, f"-Wl,-soname,{library.name}"]
    file.link(str(built), link, needed)
    try:
        run_ninja(file.write(), scratch, is_captured=True)
    except BuildError as error:
        raise BuildError(f"the simulated {library.name}: {error}") from None
    source_files.replace(built, library)


def _precompile(scratch: Path, flags: Sequence[str]) -> tuple[str, ...]:
    """The flags that include the headers of aclnn ops, which take seconds to parse, parsed once."""
    header = scratch / "ops.h"
    precompiled = scratch / "ops.h.gch"
    if not precompiled.exists():
        headers = ("ATen/ATen.h", "custom_pypto_simulator/aclnn.h")
        header.write_text("".join(f"#include <{each}>\n" for each in headers), encoding="utf-8")
        unfinished = scratch / "ops.h.unfinished"
        command = [*find_compiler().command, *flags, "-xc++-header"]
        command += [str(header), "-o", str(unfinished)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"the headers of torch cannot be compiled:\n{done.stderr}")
        unfinished.rename(precompiled)
    return ("-include", str(header))
