"""Runs code in forks of a process that has done its imports: by default torch, and nothing of ours.

Importing torch takes a second or more (torch_npu as much again, and torch._dynamo, which is behind
torch.compile and torch.export), forking a process that has done it a few milliseconds. This file is
both sides: the class is what tests use, run as a program it is the server.
"""

import copy
import faulthandler
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Any

_TIME_LIMIT = 120.0


@dataclass(frozen=True)
class Done:
    """A process that has ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class ForkServer:
    """A Python process with its imports done, of which others are forked."""

    def __init__(
        self,
        path: Sequence[Path],
        folder: Path,
        *,
        options: Sequence[str] = ("-S", "-W", "error"),
        imports: str = "import torch, torch._dynamo",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start it with `path` as its PYTHONPATH; `folder` takes what the processes write.

        `imports` is what it runs first, with these options of Python and variables. It must start
        no thread: a fork has but one.
        """
        self._folder = folder
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ASCEND_", "CUSTOM_PYPTO"))
        }
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, *options, str(Path(__file__).resolve()), imports],
                env={**inherited, "PYTHONPATH": os.pathsep.join(map(str, path)), **variables},
                stdin=theirs.fileno(),
            )
        self._lines = self._connection.makefile("rw", encoding="utf-8")

    def fork(self, imports: str, variables: Mapping[str, str]) -> "ForkServer":
        """Fork a server from this one; it has the variables, and runs these imports, too.

        It must be closed before this one.
        """
        forked = copy.copy(self)
        forked._process = None
        forked._connection = self.start("", variables, self._folder / "server", imports)
        forked._lines = forked._connection.makefile("rw", encoding="utf-8")
        return forked

    def run(self, code: str, path: Sequence[Path], variables: Mapping[str, str]) -> Done:
        """Run `code` in a new process with `path` before its `sys.path`."""
        files = [self._folder / name for name in ("stdout", "stderr")]
        self._order(code, path, variables, files)
        status = self._lines.readline()
        assert status, f"the server has ended; {self._folder}/server may say why"
        return Done(int(status), *(file.read_text(encoding="utf-8") for file in files))

    def start(
        self, code: str, variables: Mapping[str, str], log: Path, imports: str = ""
    ) -> socket.socket:
        """Start `code` in a new process, which goes on by itself; or a server with `imports`.

        Returns one end of a connection; the other is `parent` there. What it prints is in `log`.
        """
        with socket.socket(socket.AF_UNIX) as listener, TemporaryDirectory() as folder:
            listener.bind(address := str(Path(folder) / "parent"))
            listener.listen()
            listener.settimeout(_TIME_LIMIT)
            self._order(code, [], variables, [log, log], address, imports)
            connection, _ = listener.accept()
        return connection

    def _order(
        self,
        code: str,
        path: Sequence[Path],
        variables: Mapping[str, str],
        files: Sequence[Path],
        address: str = "",
        imports: str = "",
    ) -> None:
        order = {
            "code": code,
            "path": list(map(str, path)),
            "variables": dict(variables),
            "files": list(map(str, files)),
            "address": address,
            "imports": imports,
        }
        self._lines.write(json.dumps(order) + "\n")
        self._lines.flush()

    def close(self) -> None:
        """End the server, once every process that it started has ended."""
        with self._connection, suppress(OSError):  # or it has ended by itself
            self._connection.shutdown(socket.SHUT_WR)
            self._lines.read()
            self._lines.close()
        if self._process is not None:
            self._process.wait()


def _serve(parent: socket.socket, imports: str) -> None:
    exec(imports, {})
    # Imported objects stay: a collection in a fork need not visit them and copy their pages.
    gc.collect()
    gc.freeze()
    for line in parent.makefile(encoding="utf-8"):
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            _run(order)
        if not order["address"]:
            _, status = os.waitpid(process, 0)
            parent.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _run(order: dict[str, Any]) -> None:
    for number, file in enumerate(order["files"], start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), number)
    os.environ.update(order["variables"])
    sys.path[:0] = order["path"]
    sys.argv[1:] = []
    main = sys.modules["__main__"] = ModuleType("__main__")
    status = 0
    if order["address"]:
        parent = socket.socket(socket.AF_UNIX)
        parent.connect(order["address"])
        vars(main)["parent"] = parent
    else:
        # A test that hangs ends with a stack instead.
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(int(_TIME_LIMIT))
    try:
        if order["imports"]:
            _serve(parent, order["imports"])
        exec(compile(order["code"], "<test>", "exec"), vars(main))
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the tests must not depend on how a forked torch is taken down.
    os._exit(status)


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # the folder of tests
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _serve(connection, sys.argv[1])
