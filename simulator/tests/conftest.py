"""Tests of the simulator run in an environment that has torch and torch_npu, and no CANN.

Each scenario is a script in a process of its own: after an asynchronous error torch_npu drops later
ops, and environment variables are read once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels

KERNELS = Path(__file__).with_name("kernels.cpp")

# What every script starts with. Warnings of torch_npu about the missing CANN are expected.
PRELUDE = """
import warnings
warnings.filterwarnings("ignore")
import custom_pypto_simulator as sim
import torch
import torch_npu
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def opp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp entry (for ASCEND_CUSTOM_OPP_PATH) of this folder's kernels.cpp."""
    return build_kernels([KERNELS], tmp_path_factory.mktemp("opp"), vendor="tests")


@pytest.fixture
def run() -> Run:
    """Runs a script under the simulator; its assertions are the test's."""

    def run_script(
        script: str, *, prelude: str = PRELUDE, check: bool = True, **environment: object
    ) -> subprocess.CompletedProcess[str]:
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

    return run_script
