"""Compiles a plugin's AscendC kernels, where the machine has CANN's compiler for them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from custom_pypto_contract import guarded, manifest

from . import source_files
from .errors import BuildError
from .settings import Settings, ascendc_stem

ARCHITECTURE_VARIABLE = "NPU_ARCH"
DEFAULT_ARCHITECTURE = "dav-2201"
"""Atlas A2 and A3."""

# Where CANN's set_env.sh has put the compiler on PATH, in the versions of the last years.
_FOLDERS = ("bin", "compiler/ccec_compiler/bin", "tools/bisheng_compiler/bin")


def library_path(plugin: str, architecture: str) -> str:
    """Return its path in the plugin's package: beside the plugin's library, where the C++ looks."""
    return f"lib/{ascendc_stem(plugin)}_{architecture}.so"


def libraries(plugin: str, package: Path) -> list[Path]:
    """Return the libraries of earlier builds in the folder `package`."""
    return [*package.glob(library_path(plugin, "*"))]


def install(library: Path | None, plugin: str, package: Path) -> manifest.AscendcLibrary | None:
    """Put what `build` returned into the folder `package`; return its entry in the manifest."""
    for old in libraries(plugin, package):
        old.unlink()
    if library is None:
        return None
    architecture = library.stem.rpartition("_")[2]
    path = library_path(plugin, architecture)
    source_files.replace(library, package / path)
    sha256 = hashlib.sha256(library.read_bytes()).hexdigest()
    return manifest.AscendcLibrary(path, sha256, architecture)


def build(plugin: Settings, build_folder: Path) -> Path | None:
    """Compile the plugin's AscendC sources; return the library, None without a compiler.

    A plugin works without the library: its op launches a kernel of CANN or of an opp package.

    Raises:
        BuildError: the sources do not compile.
    """
    if not plugin.ascendc_sources:
        return None
    home = os.environ.get("ASCEND_HOME_PATH")
    folders = [str(Path(home, folder)) for folder in _FOLDERS] if home else []
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders])
    compiler = shutil.which("bisheng", path=path)
    if compiler is None:
        print(
            "custom_pypto_build: the AscendC kernels are not compiled, the wheel goes without:"
            " there is no bisheng on PATH or in ASCEND_HOME_PATH; `source <CANN folder>/set_env.sh`"
            " for a wheel with them",
            flush=True,
        )
        return None
    architecture = os.environ.get(ARCHITECTURE_VARIABLE) or DEFAULT_ARCHITECTURE
    if re.fullmatch(manifest.ARCHITECTURE, architecture) is None:
        raise BuildError(
            f"{ARCHITECTURE_VARIABLE} must be an --npu-arch of bisheng, such as"
            f" {DEFAULT_ARCHITECTURE!r}, got {architecture!r}"
        )
    library = plugin.root / build_folder / Path(library_path(plugin.name, architecture)).name
    library.parent.mkdir(parents=True, exist_ok=True)
    command = [
        compiler,
        *("-x", "asc"),
        f"--npu-arch={architecture}",
        *("-std=c++17", "-O2", "-fPIC", "-shared"),
        *(f"-I{folder}" for folder in plugin.include_dirs),
        *plugin.ascendc_sources,
        *("-o", str(library)),
    ]
    status, output, errors = guarded.run(command, cwd=plugin.root)
    if status != 0:
        raise BuildError(
            f"compiling the AscendC kernels for {architecture} failed"
            f" ({ARCHITECTURE_VARIABLE} names another NPU):\n{output}{errors}"
        )
    return library
