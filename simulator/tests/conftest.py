"""Tests of the simulator run in an environment that has torch and torch_npu, and no CANN.

Each scenario is a script in a process of its own: after an asynchronous error torch_npu drops later
ops, and environment variables are read once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from script import KERNELS, Run, run_script


@pytest.fixture(scope="session")
def opp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp entry (for ASCEND_CUSTOM_OPP_PATH) of kernels/kernels.cpp."""
    return build_kernels([KERNELS], tmp_path_factory.mktemp("opp"))["tests"]


@pytest.fixture
def run() -> Run:
    """Runs a script under the simulator; its assertions are the test's."""
    return run_script
