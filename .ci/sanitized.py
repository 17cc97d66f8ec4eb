"""Run Python with the sanitizers' runtime: ``python .ci/sanitized.py -m pytest ...``.

AddressSanitizer must be loaded before everything else, and Python was not built with it. So it is
preloaded, which child processes inherit.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

# The second, which Python does not load, so that the first finds what throws exceptions.
RUNTIMES = ("libasan.so", "libstdc++.so.6")


def find(compiler: str, library: str) -> str:
    """Give the path of a library of the compiler's own.

    Raises:
        SystemExit: the compiler has no such library.
    """
    command = [*shlex.split(compiler), f"-print-file-name={library}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(
            f"error: {compiler} has no {library}; set CXX to a g++, and install its libasan"
        )
    return path


def main(arguments: list[str]) -> None:
    """Become Python with `arguments`."""
    compiler = os.environ.get("CXX") or "g++"
    os.environ["LD_PRELOAD"] = " ".join(find(compiler, library) for library in RUNTIMES)
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
