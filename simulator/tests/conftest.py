"""Tests of the simulator run in an environment that has torch and torch_npu, and no CANN.

Each scenario is a script in a process of its own: after an asynchronous error torch_npu drops later
ops, and environment variables are read once.
"""

from collections.abc import Iterator

import pytest
from custom_pypto_simulator_build import build_kernels
from script import KERNELS, Run, Runner


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Runs scripts with the kernels of both vendors in kernels/."""
    vendors = build_kernels([KERNELS], tmp_path_factory.mktemp("opp"))
    opp = f"{vendors['tests']}:{vendors['outdated']}"
    started = Runner(tmp_path_factory.mktemp("runner"), opp)
    yield started
    started.close()


@pytest.fixture
def run(runner: Runner) -> Run:
    """Runs a script under the simulator; its assertions are the test's."""
    return runner.run
