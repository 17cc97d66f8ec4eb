"""Compiles a plugin's kernels for aarch64, with a driver that calls them."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from custom_pypto_build import compiler
from custom_pypto_build.settings import read_settings
from custom_pypto_build.torch_headers import Torch
from repository import ROOT

MACHINE = "aarch64"
COMPILER = "aarch64-linux-gnu-g++"
EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")
DRIVERS = Path(__file__).with_name("drivers")


def isas(*, int8: bool) -> dict[str, tuple[str, ...]]:
    """Return the compiler flags of each instruction set, for ordinary or for int8 sources."""
    return compiler.isa_flags(MACHINE, int8=int8)


ISAS = tuple(isas(int8=False))
INT8_ISAS = tuple(isas(int8=True))


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


def build_driver(plugin: str, folder: Path) -> Path:
    """Compile the driver of `plugin` and its kernels, with the flags of pyproject.toml."""
    settings = read_settings(ROOT / "plugins" / plugin)
    # There is no torch: neither the kernels nor the choice among them need its headers.
    flags = compiler.compile_flags(settings, Torch(folder / "no_torch", folder / "no_torch"))
    compilations = [(str(DRIVERS / f"{plugin}.cpp"), "driver", ["-Icsrc"])]
    for source in settings.isa_sources:
        for isa, own in isas(int8=source.int8).items():
            compilations.append((source.path, isa, [*own, *settings.isa_flags]))
    command = [require(COMPILER), *flags, "-Werror"]

    def compile_one(compilation: tuple[str, str, list[str]]) -> str:
        source, name, own = compilation
        target = folder / f"{plugin}-{Path(source).stem}-{name}.o"
        _run([*command, *own, "-c", source, "-o", str(target)], settings.root)
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, compilations))
    program = folder / plugin
    # Static: this machine needs no aarch64 libraries.
    _run([require(COMPILER), "-static", *objects, "-o", str(program)], folder)
    return program


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
