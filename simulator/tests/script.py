"""Scripts that run under the simulator, each in a process of its own."""

import textwrap
from collections.abc import Callable
from pathlib import Path

from simulated import Simulated

KERNELS = Path(__file__).with_name("kernels")
"""A project with simulated kernels, of the vendors "tests" and "outdated"."""


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


def run_script(
    simulated: Simulated,
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
    variables = {name: str(value) for name, value in environment.items()}
    done = simulated.server(variables).run(prelude + textwrap.dedent(script), [], variables)
    assert (done.returncode != 0) is bool(fails), done.stdout + done.stderr
    assert fails in done.stderr
    assert not prints or done.stdout.splitlines()[-1] == prints
