"""Tests of the simulator run in an environment that has torch and torch_npu, and no CANN.

Each scenario is a script in a process of its own: after an asynchronous error torch_npu drops later
ops, and environment variables are read once.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from script import KERNELS, Run, Runner


@pytest.fixture(scope="session")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The opp entries (for ASCEND_CUSTOM_OPP_PATH) of the vendors in kernels/."""
    return build_kernels([KERNELS], tmp_path_factory.mktemp("opp"))


@pytest.fixture(scope="session")
def opp(vendors: dict[str, Path]) -> Path:
    """The entry of the right kernels."""
    return vendors["tests"]


@pytest.fixture(scope="session")
def outdated(vendors: dict[str, Path]) -> Path:
    """The entry of outdated.cpp."""
    return vendors["outdated"]


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory, opp: Path) -> Iterator[Runner]:
    """Runs scripts."""
    started = Runner(tmp_path_factory.mktemp("runner"), opp)
    yield started
    started.close()


@pytest.fixture
def run(runner: Runner) -> Run:
    """Runs a script under the simulator; its assertions are the test's."""
    return runner.run
