"""Host time of a launch, with the real torch_npu on simulated CANN libraries.

``python -m benchmarks.launch`` needs torch_npu and custom-pypto-simulator. An empty kernel is
launched by custom_pypto and by torch_npu's EXEC_NPU_CMD_EXT; it is in a vendors directory, as on a
machine with a custom opp package. Both times include the simulator's phases 1 and 2, which say
nothing about CANN's phases.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import multiprocessing
import os
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from custom_pypto_build import plugin_library
from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.installed import find_package, find_torch
from custom_pypto_contract import variables
from custom_pypto_testing.timing.interleaved import Quartiles, Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, ratio_of, time_of

from benchmarks.run import Run, add_output

SOURCES = Path(__file__).parent / "launching"
# torch_npu's EXEC_NPU_CMD_EXT; torch.add; torch.ops.aten.add, which is called as any custom op is:
# without torch's Python binding.
OTHERS = ("EXT", "add", "aten.add")
_ROUNDS = 200
# Few enough that the task queue, which holds 4096, never blocks the host.
_BURST = 200


def main(arguments: list[str] | None = None) -> None:
    """Build the programs, time them with each task queue setting, and print a table."""
    parser = argparse.ArgumentParser("benchmarks.launch", description=__doc__)
    add_output(parser)
    options = parser.parse_args(arguments)
    columns = {name: time_of(name) for name in ("ours", *OTHERS)}
    columns |= {f"{name}/ours": ratio_of(name) for name in OTHERS}
    run = Run(options.output, "a call on the host, by TASK_QUEUE_ENABLE", columns)
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        _build(build)
        for queue in ("0", "1", "2"):
            settings = {
                "TASK_QUEUE_ENABLE": queue,
                "ASCEND_OPP_PATH": str(build / "opp"),
                "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                **dict.fromkeys((variables.NPU_ALLOCATION, variables.NPU_EXECUTOR_CACHE), "1"),
            }
            # A new process reads them before it imports anything.
            with mock.patch.dict(os.environ, settings), ProcessPoolExecutor(1, spawn) as process:
                times = process.submit(_measure, build).result()
            run.add(Measured("launch", queue, times))


def _measure(build: Path) -> dict[str, Quartiles]:
    # torch as torch_npu extends it, without types. The simulator comes first.
    importlib.import_module("custom_pypto_simulator")
    importlib.import_module("torch_npu")
    torch: Any = importlib.import_module("torch")

    plugin = ctypes.CDLL(str(build / "ours.so"))
    error = ctypes.create_string_buffer(4096)
    if plugin.custom_pypto_register_v1(error, len(error)) != 0:
        raise RuntimeError(error.value.decode())
    torch.ops.load_library(build / "theirs.so")
    x = torch.ones(1).npu()
    calls = {
        "ours": lambda: torch.ops.custom_pypto.benchmark_launched(x),
        "EXT": lambda: torch.ops.custom_pypto_benchmark.launched(x),
        "add": lambda: torch.add(x, x),
        "aten.add": lambda: torch.ops.aten.add(x, x),
    }
    bursts = {
        name: Timed(call, torch.npu.synchronize, number=_BURST) for name, call in calls.items()
    }
    times = time_interleaved(bursts, 0, warm=False, least=_ROUNDS)
    torch.npu.synchronize()
    return times


def _build(folder: Path) -> None:
    simulator: Any = importlib.import_module("custom_pypto_simulator_build")
    simulator.build_kernels([SOURCES], folder / "opp")
    plugin_library.build_project(SOURCES, folder).rename(folder / "ours.so")
    torch, torch_npu = find_torch(), find_package("torch_npu")
    if torch_npu is None:
        raise SystemExit("benchmarks.launch needs torch_npu, which is not installed")
    parts = ("", "third_party/acl/inc", "third_party/op-plugin", "third_party/hccl/inc")
    includes = [
        torch.include,
        torch.include / "torch" / "csrc" / "api" / "include",
        Path(sysconfig.get_path("include")),
        *(torch_npu / "include" / part for part in parts),
    ]
    command = [*find_compiler().command, "-O2", "-fPIC", "-shared", "-std=c++20"]
    command += [flag for include in includes for flag in ("-isystem", str(include))]
    command += [str(SOURCES / "theirs.cpp"), "-DCURRENT_VERSION=V2R13", f"-L{torch.lib}"]
    command += ["-ltorch_cpu", "-lc10", f"-L{torch_npu / 'lib'}", "-ltorch_npu"]
    subprocess.run([*command, "-o", str(folder / "theirs.so")], check=True)


if __name__ == "__main__":
    main()
