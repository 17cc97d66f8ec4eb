"""Tests of the simulator run in an environment that has torch and torch_npu, and no CANN.

Each scenario is a script in a process of its own: after an asynchronous error torch_npu drops later
ops, and environment variables are read once.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from script import KERNELS, Run, run_script
from simulated import Simulated


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a script with the kernels of both vendors in kernels/; its assertions are the test's."""
    vendors = build_kernels([KERNELS], tmp_path_factory.mktemp("opp"))
    opp = f"{vendors['tests']}:{vendors['outdated']}"
    simulated = Simulated(tmp_path_factory.mktemp("runner"), ["torchair"], [Path(__file__).parent])
    yield partial(run_script, simulated, ASCEND_CUSTOM_OPP_PATH=opp)
    simulated.close()
