"""Simulated kernels, and workers that use them with each setting of torch_npu's task queue."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from custom_pypto_testing.verification.report import FASTER

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from simulated import Simulated  # noqa: E402
from worker import MODULES, RunCode, Start, Worker  # noqa: E402

KERNELS = ("custom", "stock")
"""A machine has kernels of custom opp packages beside CANN's own, or only CANN's own."""

IGNORING = 'import warnings; warnings.filterwarnings("ignore")\n'
SLOWEST = (
    *("test_graph.py", "test_launch.py", "test_symbols.py", "test_eager.py"),
    *("test_symbolic_graphs.py", "test_imported.py", "test_verify.py"),
)
"""The files that take longest. Each of pytest's processes begins with one. In `npu`, the second and
the third need no kernels of `opp`, which the first process compiles meanwhile."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Longest files first, so that none is left to one process in the end."""
    ranks = {next(HERE.rglob(name)): rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture(scope="session")
def opp(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """ASCEND_CUSTOM_OPP_PATH for each of `KERNELS`, and an older CANN."""
    projects = sorted(ROOT.glob("plugins/*/pyproject.toml"))
    # Some ops run by torch's own.
    plugins = [path.parent for path in projects if "simulated-kernels" in path.read_text("utf-8")]
    built = build_kernels(plugins, tmp_path_factory.mktemp("opp"))
    return {
        "custom": f"{built['custom']}:{built['stock']}",
        "stock": str(built["stock"]),
        "older": f"{built['older']}:{built['stock']}",
    }


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Forks processes that have the ops, torch_npu and torchair imported."""
    started = Simulated(tmp_path_factory.mktemp("machines"), MODULES)
    yield started
    started.close()


@pytest.fixture(scope="session")
def start(
    opp: dict[str, str], machines: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Start a worker with these kernels, this TASK_QUEUE_ENABLE, the switches of core, and CANN.

    Three at a time are alive.
    """
    folder = tmp_path_factory.mktemp("workers")
    alive: dict[tuple[str, int, bool, str], Worker] = {}
    count = itertools.count()

    def worker(
        kernels: str = "custom", queue: int = 1, *, is_faster: bool = False, cann: str = "8.5.0"
    ) -> Worker:
        found = alive.pop((kernels, queue, is_faster, cann), None)
        if found is not None and not found.is_sound:
            found.close()
            found = None
        if found is None:
            if len(alive) == 3:
                alive.pop(next(iter(alive))).close()
            found = Worker(
                machines,
                {
                    "KERNELS": kernels,
                    "ASCEND_CUSTOM_OPP_PATH": opp[kernels],
                    "TASK_QUEUE_ENABLE": str(queue),
                    **(dict.fromkeys(FASTER, "1") if is_faster else {}),
                    "CUSTOM_PYPTO_SIM_CANN": cann,
                },
                folder / f"log-{next(count)}",
            )
        alive[kernels, queue, is_faster, cann] = found
        return found

    yield worker
    for each in alive.values():
        each.close()


@pytest.fixture(scope="session")
def run_code(opp: dict[str, str], machines: Simulated) -> RunCode:
    """Run code in a new process with these kernels; returns all that it printed."""

    def run(kernels: str, code: str) -> str:
        variables = {"ASCEND_CUSTOM_OPP_PATH": opp[kernels]}
        done = machines.server(variables).run(IGNORING + code, [], variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


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
