"""Processes with the real torch_npu on simulated CANN libraries.

Each is of its own: torch_npu reads its environment once, and drops later ops after an asynchronous
error.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from simulated import Simulated

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


def run(simulated: Simulated, code: str, folder: Path, **variables: str) -> Ended:
    """Run `code` after the imports above, in `folder`."""
    prologue = f"{_PROLOGUE}os.chdir({str(folder)!r})\n"
    done = simulated.server(variables).run(prologue + textwrap.dedent(code), [], variables)
    return Ended(done.returncode, done.stdout + done.stderr)
