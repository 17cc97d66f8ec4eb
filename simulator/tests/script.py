"""Scripts that run under the simulator, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

KERNELS = Path(__file__).with_name("kernels")
"""A project with simulated kernels, of the vendor "tests"."""


def write_kernels(root: Path, source: str) -> None:
    """Makes `root` a project with one source of simulated kernels, of the vendor "mine"."""
    (root / "pyproject.toml").write_text(
        '[tool.custom-pypto.simulated-kernels]\nmine = ["kernels.cpp"]\n'
    )
    (root / "kernels.cpp").write_text(source)


# What every script starts with. torch_npu warns of the missing CANN.
PRELUDE = """
import warnings
warnings.filterwarnings("ignore")
import custom_pypto_simulator as sim
import torch
import torch_npu
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_script(
    script: str, *, prelude: str = PRELUDE, check: bool = True, **environment: object
) -> subprocess.CompletedProcess[str]:
    """Runs a script with these environment variables; with ``check`` it must succeed."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ASCEND_", "CUSTOM_PYPTO_SIM_")) or name.endswith("_CACHE")
    }
    variables["PYTHONPATH"] = str(Path(__file__).parent)
    variables |= {name: str(value) for name, value in environment.items()}
    result = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=300,
        check=False,
    )
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result
