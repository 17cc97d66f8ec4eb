"""ATen's header, which takes seconds to parse, parsed once."""

from __future__ import annotations

import subprocess
from pathlib import Path

from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError

from .cache import cache_folder
from .toolchain import compile_flags, compiler_identity, digest, version


def objects_folder() -> Path:
    """The folder of what this compiler makes for these wheels. Raises BuildError."""
    toolchain = digest([compiler_identity(), version("torch_npu"), *compile_flags()])
    return cache_folder() / "objects" / toolchain


def precompile_aten() -> tuple[str, ...]:
    """The flags that include it; two processes must not call this at a time.

    A compiler with other flags parses it again. Raises BuildError.
    """
    folder = objects_folder()
    header = folder / "aten.h"
    precompiled = folder / "aten.h.gch"
    if not precompiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        header.write_text("#include <ATen/ATen.h>\n", encoding="utf-8")
        unfinished = folder / "aten.h.unfinished"
        command = [*find_compiler().command, *compile_flags(), "-xc++-header"]
        command += [str(header), "-o", str(unfinished)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"the headers of torch cannot be compiled:\n{done.stderr}")
        unfinished.rename(precompiled)
    return ("-include", str(header))
