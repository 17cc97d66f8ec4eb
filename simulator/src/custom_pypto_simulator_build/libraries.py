"""The simulated CANN libraries, built into the cache, and libraries of simulated aclnn kernels."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_build import simulated_kernels, source_files
from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError
from custom_pypto_build.ninja import NinjaFile, run_ninja
from custom_pypto_contract import guarded

from .cache import cache_folder, locked

SOURCES = Path(__file__).parent.parent / "custom_pypto_simulator"
"""Where the simulator's own sources and headers are."""

_LINK_FLAGS = ("-Wl,-z,now",)
_CANN, _OPS = "libascendcl.so", "libopapi.so"
_EMPTY = (
    "libnnopbase.so",
    "libacl_op_compiler.so",
    "libacl_tdt_channel.so",
    "libhccl.so",
    "libge_runner.so",
    "libgraph.so",
)
"""These have no functions of their own: what is looked up in them is found in _CANN."""
_HEADERS = ("TensorOperators.h", "core/dispatch/Dispatcher.h", "ops/from_blob.h")
"""Of ATen, what aclnn.h includes, and the operators of tensors. All of it takes twice as long."""
_OF_TORCH = ("libtorch_cpu.so", "libc10.so")


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
    flags = compile_flags()
    version = importlib.metadata.version("torch_npu")
    return cache_folder() / "objects" / digest([compiler_identity(), version, *flags])


def build_libraries() -> Libraries:
    """Every simulated library, built now or found in the cache. Raises BuildError."""
    cache = cache_folder()
    scratch = objects_folder()
    folder = cache / "libraries" / digest([scratch.name, *_EMPTY, *read_files(SOURCES / "csrc")])
    cann, *empty = (folder / soname for soname in (_CANN, *_EMPTY))
    of_torch = tuple(package_folder("torch") / "lib" / name for name in _OF_TORCH)
    libraries = Libraries((cann, *empty), of_torch, folder / _OPS)
    if not libraries.ops.exists():
        with locked(cache):
            with ThreadPoolExecutor() as other_core:
                precompiled = other_core.submit(precompile_torch)
                _build(cann, "runtime", scratch, [])
                for path in empty:
                    _build(path, "", scratch, [str(cann)])
            precompiled.result()
            # The last one: it says that all are there.
            _build(libraries.ops, "opapi", scratch, libraries.needed_by_kernels)
    return libraries


def build_kernels(projects: Iterable[str | Path], folder: str | Path) -> dict[str, Path]:
    """Builds the simulated kernels that plugins name, in the layout of an installed opp package.

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
        link_flags=(*_LINK_FLAGS, *libraries.needed_by_kernels),
    )
    scratch = cache_folder() / "kernels" / digest([*map(str, roots), *toolchain.compile_flags])
    with locked(scratch):
        return simulated_kernels.build(roots, Path(folder).resolve(), scratch, toolchain)


def precompile_torch() -> tuple[str, ...]:
    """The flags that include torch's headers, which take seconds to parse, parsed once.

    Two processes must not call this at a time. Raises BuildError.
    """
    folder = objects_folder()
    header = folder / "torch.h"
    precompiled = folder / "torch.h.gch"
    if not precompiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        header.write_text("".join(f"#include <ATen/{each}>\n" for each in _HEADERS), "utf-8")
        unfinished = folder / "torch.h.unfinished"
        command = [*find_compiler().command, *compile_flags(), "-xc++-header"]
        command += [str(header), "-o", str(unfinished)]
        status, _, errors = guarded.run(command)
        if status != 0:
            raise BuildError(f"the headers of torch cannot be compiled:\n{errors}")
        unfinished.rename(precompiled)
    return ("-include", str(header))


def _build(library: Path, sources: str, scratch: Path, needed: Sequence[str]) -> None:
    command, folder = find_compiler().command, scratch / library.name
    file = NinjaFile(folder, [*command, *compile_flags()])
    if sources:
        # One file that includes all: headers take most of the time.
        together = folder / "together.cpp"
        names = sorted((SOURCES / "csrc" / sources).glob("*.cpp"))
        folder.mkdir(parents=True, exist_ok=True)
        together.write_text("".join(f'#include "{each}"\n' for each in names), encoding="utf-8")
        file.compile(str(together), precompile_torch() if sources == "opapi" else [])
    link = [*command, "-shared", *_LINK_FLAGS, f"-Wl,-soname,{library.name}"]
    file.link(str(folder / library.name), link, ["-Wl,--no-as-needed", *needed])
    try:
        run_ninja(file.write(), scratch, is_captured=True)
    except BuildError as error:
        raise BuildError(f"the simulated {library.name}: {error}") from None
    source_files.replace(folder / library.name, library)


def compile_flags() -> tuple[str, ...]:
    """The flags of all sources. Raises BuildError when torch or torch_npu is not installed."""
    torch = package_folder("torch") / "include"
    # The torch_npu wheel carries the ACL headers.
    acl = package_folder("torch_npu") / "include" / "third_party" / "acl" / "inc"
    include = SOURCES / "include"
    # Recorded in each library, see runtime.h.
    headers = digest(read_files(include))[:12]
    abi = f"torch {importlib.metadata.version('torch')}, simulator headers {headers}"
    return (
        "-std=c++20",
        "-O1",
        "-fPIC",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-DFUNC_VISIBILITY",
        "-DAT_PER_OPERATOR_HEADERS",
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
        install = "pip install torch"
        if package == "torch_npu":
            release = importlib.metadata.version("torch").partition("+")[0]
            install = f"pip install --no-deps torch_npu=={release}"
        raise BuildError(
            f"{package} is not installed in this environment; the simulator is built against its "
            f"headers: {install}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def digest(texts: Iterable[str]) -> str:
    """A short hash of `texts`."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def read_files(folder: Path) -> list[str]:
    """The texts of the files below `folder`."""
    return [path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()]
