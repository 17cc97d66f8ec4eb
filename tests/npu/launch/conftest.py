"""A plugin that shows what a launch marshals, simulated kernels for it, and processes to run it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_build import plugin_library
from custom_pypto_simulator_build import build_kernels
from simulated import Simulated

from launch import process

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp package of kernels.cpp."""
    return build_kernels([HERE], tmp_path_factory.mktemp("opp"))["simulated"]


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled plugin.cpp."""
    return plugin_library.build_project(HERE, tmp_path_factory.mktemp("plugin"))


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """What starts processes with torch_npu."""
    started = Simulated(tmp_path_factory.mktemp("simulated"), ["torch._inductor.config"])
    yield started
    started.close()


@pytest.fixture
def launch(tmp_path: Path, package: Path, plugin: Path, simulated: Simulated) -> Callable[..., Any]:
    """Run code that calls the plugin's ops with torch_npu; return what it gave."""

    def run_code(code: str, **variables: str) -> Any:
        prologue = f"load({str(plugin)!r})\n"
        environment = {"ASCEND_CUSTOM_OPP_PATH": str(package)} | variables
        ended = process.run(simulated, prologue + code, tmp_path, **environment)
        assert ended.returncode == 0, ended.output
        given = [json.loads(text) for text in ended.given]
        return given[0] if len(given) == 1 else given

    return run_code
