"""Compiles a C++ file against torch's own C++ interface, to compare with what plugins do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.torch_headers import find_torch


def compile_library(source: Path, library: Path, *flags: str) -> None:
    """Write `library`; `flags` come after the source. Nothing imports torch.

    Raises CalledProcessError when it does not compile.
    """
    torch = find_torch()
    command = [*find_compiler().command, "-O2", "-fPIC", "-shared", "-std=c++20"]
    for folder in (torch.include, torch.include / "torch" / "csrc" / "api" / "include"):
        command += ["-isystem", str(folder)]
    command += [str(source), "-o", str(library), f"-L{torch.lib}", "-ltorch_cpu", "-lc10"]
    subprocess.run([*command, *flags], check=True)
