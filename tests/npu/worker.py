"""The parent's end of processes that run functions on NPUs; each has its own TASK_QUEUE_ENABLE."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from simulated import Simulated

HERE = Path(__file__).parent
MODULES = ("torchair", "custom_pypto.core")
"""Modules that take long to import and can be imported before the fork."""


class Worker:
    """A process that runs functions of the package `scenarios`; see worker_process.py."""

    def __init__(self, simulated: Simulated, environment: Mapping[str, str], log: Path) -> None:
        """Start the process; what it prints is in `log`."""
        self.is_sound = True
        """Whether all went well; an asynchronous error stays with its process."""
        code = (
            f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
            "import worker_process; worker_process.serve(parent)"
        )
        self._connection = simulated.server(environment).start(code, environment, log)
        self._lines = self._connection.makefile("rw", encoding="utf-8")
        self._log = log.open(encoding="utf-8")

    def run(self, function: str, *arguments: Any) -> Any:
        """Run "module.function" of the package `scenarios` there, and return its result."""
        start = self._log.seek(0, os.SEEK_END)
        line = ""
        with suppress(ConnectionError):
            self._lines.write(json.dumps({"function": function, "arguments": arguments}) + "\n")
            self._lines.flush()
            line = self._lines.readline()
        self._log.seek(start)
        if not line:
            self.is_sound = False
            raise AssertionError(f"the worker ended\n{self._log.read()}")
        answer = json.loads(line)
        if answer["error"]:
            self.is_sound = False
            raise AssertionError(f"{answer['error']}\n{self._log.read()}")
        return answer["value"]

    def close(self) -> None:
        """End the process. Idempotent."""
        if not self._log.closed:
            self._connection.shutdown(socket.SHUT_RDWR)
            self._lines.close()
            self._connection.close()
            self._log.close()


Start = Callable[..., Worker]
RunCode = Callable[[str, str], str]
Launch = Callable[..., Any]
