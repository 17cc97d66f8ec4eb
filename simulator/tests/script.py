"""Scripts that run under the simulator, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from simulated import Simulated

KERNELS = Path(__file__).with_name("kernels")
"""A project with simulated kernels, of the vendor "tests"."""
OUTDATED = KERNELS.with_name("outdated")
"""The same, of the vendor "outdated"."""


def write_kernels(root: Path, source: str) -> None:
    """Makes `root` a project with one source of simulated kernels, of the vendor "mine"."""
    (root / "pyproject.toml").write_text(
        '[tool.custom-pypto.simulated-kernels]\nmine = ["kernels.cpp"]\n'
    )
    (root / "kernels.cpp").write_text(source)


# Most scripts start with this. torch_npu warns of the missing CANN.
PRELUDE = """
import contextlib, ctypes, warnings
warnings.filterwarnings("ignore")
import custom_pypto_simulator as sim
import torch
import torch_npu
from launch import *
@contextlib.contextmanager
def raises(*texts, error=RuntimeError):
    try:
        yield
    except error as raised:
        assert all(text in str(raised) for text in texts), raised
    else:
        raise AssertionError("no error")
"""

Run = Callable[..., None]

HERE = Path(__file__).parent


class Runner:
    """Runs scripts; those that begin as PRELUDE does are forked from a process that has done it."""

    def __init__(self, folder: Path, opp: Path) -> None:
        """`folder` takes what the processes write; `opp` is an opp entry that they all have."""
        self._opp = opp
        self._simulated = Simulated(folder, ["torchair"], [HERE])

    def run(
        self,
        script: str,
        *,
        prelude: str = PRELUDE,
        prints: str = "",
        fails: str = "",
        **environment: object,
    ) -> None:
        """Runs a script with these environment variables, and checks that it succeeds.

        With `prints`, that is the last line of its output; with `fails`, it must fail and say that.
        """
        environment = {"ASCEND_CUSTOM_OPP_PATH": self._opp, **environment}
        variables = {name: str(value) for name, value in environment.items()}
        code = prelude + textwrap.dedent(script)
        if prelude.startswith(PRELUDE):
            done = self._simulated.server(variables).run(code, [], variables)
            result = subprocess.CompletedProcess([], done.returncode, done.stdout, done.stderr)
        else:
            result = run_alone(code, variables)
        assert (result.returncode != 0) is bool(fails), result.stdout + result.stderr
        assert fails in result.stderr
        assert not prints or result.stdout.splitlines()[-1] == prints

    def close(self) -> None:
        """Ends the servers that processes are forked from."""
        self._simulated.close()


def run_alone(code: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process that imports, and ends, as any does."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ASCEND_", "CUSTOM_PYPTO_SIM_")) or name.endswith("_CACHE")
    }
    variables["PYTHONPATH"] = str(HERE)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=variables | environment,
        timeout=300,
        check=False,
    )
