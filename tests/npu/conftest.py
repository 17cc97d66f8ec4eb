"""Simulated kernels, and workers that use them with each setting of torch_npu's task queue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from worker import Start, Worker  # noqa: E402

KERNELS = ("custom", "stock")
"""Which kernels a machine has: those of custom opp packages and CANN's own, or the latter alone."""


@pytest.fixture(scope="session")
def opp(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """ASCEND_CUSTOM_OPP_PATH for each of `KERNELS`."""
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    built = build_kernels(plugins, tmp_path_factory.mktemp("opp"))
    return {"custom": f"{built['custom']}:{built['stock']}", "stock": str(built["stock"])}


@pytest.fixture(scope="session")
def start(opp: dict[str, str]) -> Iterator[Start]:
    """Start a worker with these kernels, this TASK_QUEUE_ENABLE, and CANN's cache of executors.

    Two at a time are alive.
    """
    alive: dict[tuple[str, int, bool], Worker] = {}

    def worker(kernels: str = "custom", queue: int = 1, *, is_cached: bool = True) -> Worker:
        found = alive.pop((kernels, queue, is_cached), None)
        if found is not None and not found.is_sound:
            found.close()
            found = None
        if found is None:
            if len(alive) == 2:
                alive.pop(next(iter(alive))).close()
            found = Worker(
                {
                    "ASCEND_CUSTOM_OPP_PATH": opp[kernels],
                    "TASK_QUEUE_ENABLE": str(queue),
                    "CUSTOM_PYPTO_SIM_EXECUTOR_CACHE": str(int(is_cached)),
                    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                }
            )
        alive[kernels, queue, is_cached] = found
        return found

    yield worker
    for each in alive.values():
        each.close()


@pytest.fixture(scope="session", params=KERNELS)
def kernels(request: pytest.FixtureRequest) -> str:
    """Each of `KERNELS`."""
    return str(request.param)


@pytest.fixture(scope="session", params=[0, 1, 2])
def queue(request: pytest.FixtureRequest) -> int:
    """Each TASK_QUEUE_ENABLE."""
    return int(request.param)


@pytest.fixture
def npu(start: Start, kernels: str, queue: int) -> Worker:
    """A worker with each kind of kernels and each setting of the task queue."""
    return start(kernels, queue)


@pytest.fixture
def graph_npu(start: Start, kernels: str) -> Worker:
    """A worker with each kind of kernels; graph capture refuses TASK_QUEUE_ENABLE=2."""
    return start(kernels, 1)
