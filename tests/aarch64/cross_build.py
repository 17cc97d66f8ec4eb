"""Compiles the plugins and driver.cpp for aarch64, and starts them under emulation."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from custom_pypto_build import compiler, plugin_library
from custom_pypto_build.settings import read_settings
from repository import ROOT

MACHINE = "aarch64"
COMPILER = f"{MACHINE}-linux-gnu-g++"
EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")
PLUGINS = tuple(sorted(path.name for path in (ROOT / "plugins").iterdir()))


def isas_of(plugin: str) -> tuple[str, ...]:
    """Return the instruction sets for which a plugin has kernels."""
    settings = read_settings(ROOT / "plugins" / plugin)
    return tuple(compiler.isa_flags(MACHINE, settings.isa_kinds)) if settings.isa_sources else ()


def require(*names: str) -> str:
    """Return the first of these programs that is installed; without one the test fails."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(
            f"{' or '.join(names)} was not found, so the kernels for {MACHINE} cannot be tested;"
            " install what is missing: apt-get install g++-aarch64-linux-gnu qemu-user",
            pytrace=False,
        )
    return found


class Build:
    """The programs, built with the torch for aarch64 that tox installs."""

    def __init__(self, folder: Path, torch: Path) -> None:
        self._folder, self._torch = folder, torch
        self._libraries: dict[str, str] = {}
        # torch's libgfortran needs it, for files that nobody reads.
        self._compile("-shared", "-Wl,-soname,libz.so.1", "-xc++", os.devnull, "-olibz.so.1")
        include = torch / "include"
        self._compile(
            *("-std=c++17", "-O1", f"-I{include}", f"-I{include}/torch/csrc/api/include"),
            *(str(Path(__file__).with_name("driver.cpp")), "-odriver", f"-L{torch / 'lib'}"),
            *("-ltorch_cpu", "-lc10", "-Wl,-rpath-link,.", f"-Wl,-rpath-link,{torch / 'lib'}"),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CUSTOM_PYPTO_TORCH_DIR", str(torch))
            patch.setenv("CXX", COMPILER)
            patch.setenv("_PYTHON_HOST_PLATFORM", f"linux-{MACHINE}")
            for plugin in PLUGINS:
                patch.chdir(ROOT / "plugins" / plugin)
                built = plugin_library.build_project(Path.cwd(), Path("build/aarch64"))
                self._libraries[plugin] = str(built)

    def _compile(self, *arguments: str) -> None:
        subprocess.run([require(COMPILER), *arguments], cwd=self._folder, check=True)

    def command(self, cpu: str, isa: str | None, plugins: Iterable[str] = PLUGINS) -> list[str]:
        """Return the command that runs the plugins on a processor, by default at its best."""
        variables = {
            "LD_LIBRARY_PATH": f"{self._torch / 'lib'}:{self._folder}",
            # Waiting threads would slow the working one.
            "OMP_WAIT_POLICY": "passive",
        }
        if isa is not None:
            variables["CUSTOM_PYPTO_CPU_ISA"] = isa
        options = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        libraries = [self._libraries[plugin] for plugin in plugins]
        command = [require(*EMULATORS), "-cpu", cpu, "-L", f"/usr/{MACHINE}-linux-gnu"]
        return [*command, *options, str(self._folder / "driver"), *libraries]
