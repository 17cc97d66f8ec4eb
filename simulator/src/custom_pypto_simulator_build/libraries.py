"""The simulated CANN libraries and their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .abi import abi_flag
from .compiler import Library, build
from .installed import acl_includes, package_folder, simulator_folder, torch_includes, version

# Folder of sources and soname, in load order.
_WITHOUT_TORCH = (
    ("ascendcl", "libascendcl.so"),
    ("nnopbase", "libnnopbase.so"),
    ("op_compiler", "libacl_op_compiler.so"),
    ("hccl", "libhccl.so"),
    ("tdt", "libacl_tdt_channel.so"),
    ("ge", "libge_runner.so"),
    ("empty", "libgraph.so"),
    ("empty", "libfmk_parser.so"),
    ("empty", "libascend_protobuf.so"),
)
# The first of them.
_NEEDED_BY_KERNELS = 2


@dataclass(frozen=True)
class Libraries:
    """Paths of the built libraries.

    ``runtime`` must be loaded before torch_npu, in this order, and ``ops`` once torch is.
    """

    runtime: tuple[Path, ...]
    ops: Path


def build_libraries() -> Libraries:
    """Every simulated library, built now or found in the cache. Raises BuildError."""
    folder = simulator_folder()
    versions = (version("torch_npu"),)
    runtime = [
        Library(
            soname,
            sources=_sources(folder / "csrc" / name),
            includes=(folder / "include", folder / "csrc" / name),
            system_includes=tuple(acl_includes()),
            versions=versions,
            flags=("-pthread", abi_flag()),
        )
        for name, soname in _WITHOUT_TORCH
    ]
    ops = Library(
        "libopapi.so",
        sources=_sources(folder / "csrc" / "opapi"),
        includes=(folder / "include", folder / "csrc" / "opapi"),
        system_includes=(*torch_includes(), *acl_includes()),
        versions=(*versions, version("torch")),
        needed=(*runtime[:_NEEDED_BY_KERNELS], *_torch_libraries()),
        flags=(abi_flag(),),
        precompiled=folder / "csrc" / "opapi" / "pattern.h",
    )
    *built, built_ops = build([*runtime, ops])
    return Libraries(tuple(built), built_ops)


def kernel_dependencies(runtime: Sequence[Path]) -> tuple[Path, ...]:
    """The libraries that simulated kernels are linked against; `runtime` as in `Libraries`."""
    return (*runtime[:_NEEDED_BY_KERNELS], *_torch_libraries())


def _torch_libraries() -> tuple[Path, ...]:
    folder = package_folder("torch") / "lib"
    return (folder / "libtorch_cpu.so", folder / "libc10.so")


def _sources(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.cpp")))
