"""A plugin that shows what a launch marshals, simulated kernels for it, and processes to run it."""

import json
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_build import plugin_library
from custom_pypto_simulator_build import build_kernels
from custom_pypto_simulator_build.cache import cache_folder, locked
from custom_pypto_simulator_build.libraries import digest
from simulated import Simulated
from worker import Launch

HERE = Path(__file__).parent

PROLOGUE = """\
import ctypes, json, os, sys
import custom_pypto_simulator as sim
import torch, torch_npu
ops = torch.ops.custom_pypto
def give(value):
    print("give", json.dumps(value))
def everything(x, bias=None, rest=(), maybe_text=None, flag=True):
    return ops.test_everything(x, bias, list(rest), "abc", maybe_text, [1, 2], [0.5, 1.5],
                               [True, False, True], 2.25, 7, flag, torch.bfloat16, 0.25)
# The number that everything() adds to x without other arguments.
NUMBER = 2.25 + 7 + 1000 + 0.25 + 30 + 3 + 2 + 20000 + 100000
def refusal(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        return str(error)
def live():
    torch.npu.synchronize()
    sim.drain()
    return {kind: count for kind, count in sim.live_objects().items() if "memory" not in kind
            and kind != "stream"} | {"huge memory": sim.live_objects().get("huge memory", 0)}
# CANN's cache has a launch once phase 2 has run, so both ends wait for the queue.
def phase_1_runs(launch):
    torch.npu.synchronize()
    before = sim.phase_1_calls()
    result = launch()
    torch.npu.synchronize()
    return result, sim.phase_1_calls() - before
"""
LOAD = """\
os.chdir({folder!r})
library = ctypes.CDLL({plugin!r}, mode=os.RTLD_NOW | os.RTLD_LOCAL)
error = ctypes.create_string_buffer(4096)
assert library.custom_pypto_register_v1(error, 4096) == 0, error.value
"""


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp package of kernels.cpp."""
    return build_kernels([HERE], tmp_path_factory.mktemp("opp"))["simulated"]


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled plugin.cpp; another of pytest's processes may have compiled it."""
    folder = cache_folder() / "plugins" / digest([str(HERE)])
    with locked(folder):
        library = plugin_library.build_project(HERE, folder)
        return Path(shutil.copy2(library, tmp_path_factory.mktemp("plugin")))


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Starts processes with torch_npu."""
    started = Simulated(tmp_path_factory.mktemp("simulated"), ["torch._inductor.config"])
    yield started
    started.close()


@pytest.fixture
def launch(tmp_path: Path, package: Path, plugin: Path, simulated: Simulated) -> Launch:
    """Run code that calls the plugin's ops with torch_npu; return what it gave.

    Each call has a process of its own: torch_npu reads its environment once, and drops later ops
    after an asynchronous error.
    """
    prologue = PROLOGUE + LOAD.format(folder=str(tmp_path), plugin=str(plugin))

    def run_code(code: str, **variables: object) -> Any:
        environment = {"ASCEND_CUSTOM_OPP_PATH": str(package)}
        environment |= {name: str(value) for name, value in variables.items()}
        done = simulated.server(environment).run(prologue + textwrap.dedent(code), [], environment)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        given = [json.loads(line[5:]) for line in lines if line.startswith("give ")]
        return given[0] if len(given) == 1 else given

    return run_code
