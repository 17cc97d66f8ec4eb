"""Runs functions on NPUs in a process of its own, one after another, as its parent asks.

What decides how torch_npu works (TASK_QUEUE_ENABLE, where kernels are found) is read once in a
process, so each setting has its own worker. Requests and answers are lines of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

EXPECTED = (
    "infer and generate sym shape failed.*custom_pypto.npu_sparse_attention_pto.*'NoneType' object"
)
"""torchair's warning of a converter that makes a Cast of what is no argument, next to a type for
which torchair has no function: it then writes no shape rule of its own into the nodes. CANN's types
have theirs."""


class Worker:
    """The parent's end."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start the process; it imports torch_npu under the simulator."""
        self.is_sound = True
        """Whether all went well; an asynchronous error stays with its process."""
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-u", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment},
            text=True,
        )

    def run(self, function: str, *arguments: Any) -> Any:
        """What "module.function" of the package `scenarios` returns there.

        Raises:
            AssertionError: it raised, or the process ended; the message has what it printed.
        """
        self._log.seek(0, os.SEEK_END)
        start = self._log.tell()
        request = {"function": function, "arguments": arguments}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        self._log.seek(start)
        if not line:
            self.is_sound = False
            raise AssertionError(f"the worker ended: {self._process.wait()}\n{self._log.read()}")
        answer = json.loads(line)
        if answer["error"]:
            self.is_sound = False
            raise AssertionError(f"{answer['error']}\n{self._log.read()}")
        return answer["value"]

    def close(self) -> None:
        """End the process. Idempotent."""
        if not self._log.closed:
            self._process.communicate()
            self._log.close()


Start = Callable[..., Worker]


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # Whatever else prints, prints to the log.
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).parent))
    import warnings

    # torch_npu warns of the missing CANN.
    warnings.filterwarnings("ignore")
    warnings.filterwarnings("error", module=r"(torch_npu\.dynamo\.)?torchair\.")
    warnings.filterwarnings("ignore", EXPECTED)
    for module in ("custom_pypto_simulator", "torch", "torch_npu"):
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"error": "", "value": None}
        try:
            module, _, name = request["function"].partition(".")
            function = getattr(importlib.import_module(f"scenarios.{module}"), name)
            answer["value"] = function(*request["arguments"])
        except BaseException:
            answer["error"] = traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
