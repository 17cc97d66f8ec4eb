"""Processes with the real torch_npu on simulated CANN libraries.

Each is of its own: torch_npu reads its environment when it is imported, and drops later ops after
an asynchronous error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

_PROLOGUE = """\
import ctypes, json, os, sys
import custom_pypto_simulator as sim
import torch, torch_npu
ops = torch.ops.custom_pypto
def give(value):
    print("give", json.dumps(value))
def load(path):
    library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    error = ctypes.create_string_buffer(4096)
    assert library.custom_pypto_register_v1(error, 4096) == 0, error.value
def everything(x, bias=None, rest=(), maybe_text=None, flag=True):
    return ops.test_everything(x, bias, list(rest), "abc", maybe_text, [1, 2], [0.5, 1.5],
                               [True, False, True], 2.25, 7, flag, torch.bfloat16, 0.25)
# What everything() adds to x when nothing else is given.
NUMBER = 2.25 + 7 + 1000 + 0.25 + 30 + 3 + 2 + 20000 + 100000
def refusal(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        return str(error)
def leave():
    # After an error in its queue, torch_npu sometimes waits for ever when Python ends.
    sys.stdout.flush()
    os._exit(0)
def live():
    torch.npu.synchronize()
    sim.drain()
    return {kind: count for kind, count in sim.live_objects().items() if "memory" not in kind
            and kind != "stream"} | {"huge memory": sim.live_objects().get("huge memory", 0)}
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    returncode: int
    output: str

    @property
    def given(self) -> list[str]:
        """The JSON of what it gave."""
        lines = self.output.splitlines()
        return [line.removeprefix("give ") for line in lines if line.startswith("give ")]


def run(code: str, folder: Path, **variables: str) -> Ended:
    """Run `code` after the imports above, in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", _PROLOGUE + textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(done.returncode, done.stdout)
