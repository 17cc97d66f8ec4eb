"""No-ops with the schemas of our ops: what a call costs before any work."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from custom_pypto_build.compiler import find_compiler

SOURCE = Path(__file__).parent / "no_op" / "no_op.cpp"


@functools.cache
def ops() -> Any:
    """Compile and load them; return their namespace."""
    folder = Path(torch.__file__).parent
    include = folder / "include"
    with tempfile.TemporaryDirectory() as build:
        library = Path(build) / "no_op.so"
        command = [*find_compiler().command, "-O2", "-fPIC", "-shared", "-std=c++20"]
        for headers in (include, include / "torch" / "csrc" / "api" / "include"):
            command += ["-isystem", str(headers)]
        command += [str(SOURCE), "-o", str(library), f"-L{folder / 'lib'}", "-ltorch_cpu", "-lc10"]
        subprocess.run(command, check=True)
        torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    return torch.ops.custom_pypto_benchmark_no_op
