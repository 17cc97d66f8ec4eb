"""Run Python with the sanitizers' runtime: ``python .ci/sanitized.py -m pytest ...``.

AddressSanitizer must be loaded before everything else, and Python was not built with it. LD_PRELOAD
loads it, for child processes too.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

# Python does not load libstdc++; AddressSanitizer looks in it for the function that throws.
RUNTIMES = ("libasan.so", "libstdc++.so.6")


def find(compiler: str, library: str) -> str:
    """Return the path of one of the compiler's libraries.

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
    """Replace this process by Python with `arguments`."""
    compiler = os.environ.get("CXX") or "g++"
    os.environ["LD_PRELOAD"] = " ".join(find(compiler, library) for library in RUNTIMES)
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
