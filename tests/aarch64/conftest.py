"""Emulated aarch64 kernels, and ops on them with the names that the plugins' tests use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# The plugins' own tests run here too.
pytest.register_assert_rewrite(
    "plugins.lightning_indexer.tests.test_quant",
    "plugins.lightning_indexer.tests.test_scores",
    "plugins.lightning_indexer.tests.test_selection",
    "plugins.sparse_attention.tests.test_attention",
)

from attention_op import attend  # noqa: E402
from cross_build import INT8_ISAS, ISAS, build_driver  # noqa: E402
from emulator import CPUS, Emulated  # noqa: E402
from indexer_op import select, select_int8  # noqa: E402
from product_op import multiply  # noqa: E402

Kernels = Callable[[str], Emulated]
"""The kernels of a plugin at the instruction set of the test."""
Op = Callable[..., Any]
"""An op on emulated kernels."""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the driver of a plugin, compiled once."""
    folder = tmp_path_factory.mktemp("drivers")
    return cache(lambda plugin: build_driver(plugin, folder))


@pytest.fixture(scope="session", params=ISAS)
def isa(request: pytest.FixtureRequest) -> Any:
    """Give each instruction set of kernels of floating-point numbers."""
    return request.param


@pytest.fixture(scope="session", params=INT8_ISAS)
def int8_isa(request: pytest.FixtureRequest) -> Any:
    """Give each instruction set of int8 kernels: the others, and further ones."""
    return request.param


@contextmanager
def kernels_at(driver: Callable[[str], Path], isa: str) -> Iterator[Kernels]:
    """Start a plugin's kernels on the least processor that has the instruction set."""
    started: dict[str, Emulated] = {}

    def start(plugin: str) -> Emulated:
        found = started.get(plugin)
        if found is None or not found.is_alive():
            found = started[plugin] = Emulated(driver(plugin), CPUS[isa], isa)
            assert found.isa() == isa
        return found

    yield start
    for process in started.values():
        process.close()


@pytest.fixture(scope="session")
def kernels(driver: Callable[[str], Path], isa: str) -> Iterator[Kernels]:
    with kernels_at(driver, isa) as start:
        yield start


@pytest.fixture(scope="session")
def int8_kernels(driver: Callable[[str], Path], int8_isa: str) -> Iterator[Kernels]:
    with kernels_at(driver, int8_isa) as start:
        yield start


@pytest.fixture
def indexer(kernels: Kernels) -> Op:
    return partial(select, kernels("lightning_indexer"))


@pytest.fixture
def quant_indexer(int8_kernels: Kernels) -> Op:
    return partial(select_int8, int8_kernels("lightning_indexer"))


@pytest.fixture
def attention(kernels: Kernels) -> Op:
    return partial(attend, kernels("sparse_attention"))


@pytest.fixture
def product(kernels: Kernels) -> Op:
    return partial(multiply, kernels("sparse_attention"))


@pytest.fixture
def int8_product(int8_kernels: Kernels) -> Op:
    return partial(multiply, int8_kernels("lightning_indexer_prolog"))
