"""Runs code in new processes that have torch imported already, and nothing of custom_pypto.

Importing torch takes a second or more, forking a process that has done it a few milliseconds. This
file is both sides: the class is what tests use, run as a program it is the server.
"""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

_TIME_LIMIT = 60.0


@dataclass(frozen=True)
class Done:
    """A process that has ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class ForkServer:
    """A Python process with torch imported, of which others are forked."""

    def __init__(self, path: Sequence[Path], folder: Path) -> None:
        """Start it with `path` as its PYTHONPATH; `folder` takes what the processes write."""
        self._folder = folder
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("CUSTOM_PYPTO")
        }
        self._server = subprocess.Popen(
            [sys.executable, "-S", "-W", "error", __file__],
            env={**inherited, "PYTHONPATH": os.pathsep.join(map(str, path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, path: Sequence[Path], variables: Mapping[str, str]) -> Done:
        """Run `code` in a new process with `path` before its `sys.path`."""
        files = [self._folder / name for name in ("stdout", "stderr")]
        order = {
            "code": code,
            "path": list(map(str, path)),
            "variables": dict(variables),
            "files": list(map(str, files)),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        return Done(status, *(file.read_text(encoding="utf-8") for file in files))

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.communicate()


def _serve() -> None:
    import torch  # noqa: F401

    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            _run(json.loads(line))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(order: dict[str, Any]) -> None:
    for number, file in enumerate(order["files"], start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(order["variables"])
    sys.path[:0] = order["path"]
    # Not the server's own folder, which is that of the tests.
    sys.path.remove(str(Path(__file__).parent))
    main = sys.modules["__main__"] = ModuleType("__main__")
    status = 0
    # A test that hangs ends with a stack instead.
    faulthandler.dump_traceback_later(_TIME_LIMIT, exit=True)
    try:
        exec(compile(order["code"], "<test>", "exec"), vars(main))
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the tests must not depend on how a forked torch is taken down.
    os._exit(status)


if __name__ == "__main__":
    _serve()
