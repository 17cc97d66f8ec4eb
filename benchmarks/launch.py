"""Host time of a launch, with the real torch_npu on simulated CANN libraries.

``python -m benchmarks.launch`` needs torch_npu and custom-pypto-simulator. An empty kernel is
launched by custom_pypto's EXEC_NPU_CMD and by torch_npu's EXEC_NPU_CMD_EXT; it is in a vendors
directory, as on a machine with a custom opp package. Both times include the simulator's phases 1
and 2, which say nothing about those of CANN.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import sysconfig
import tempfile
import timeit
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from custom_pypto_build import plugin_library
from custom_pypto_build.installed import find_package
from custom_pypto_contract import variables

from benchmarks import child, torch_library

SOURCES = Path(__file__).parent / "launching"
OURS = "custom_pypto, EXEC_NPU_CMD"
THEIRS = "torch_npu, EXEC_NPU_CMD_EXT"
BUILT_IN = "torch.add"
# The same op, called as any custom op is: without torch's Python binding.
BUILT_IN_BY_NAME = "torch.ops.aten.add"
# The steps of OURS, each with those before it.
DISPATCHED = "a no-op"
ALLOCATED = "+ allocates its result"
DESCRIBED = "+ describes two tensors to CANN"
CALLED = "+ calls both phases"
# Few enough that the task queue, which holds 4096, never blocks the host.
_BURST = 200


def main() -> None:
    """Build the launchers, time them with each task queue setting, and print a table."""
    parser = argparse.ArgumentParser(description="Time launches on simulated CANN libraries.")
    parser.add_argument("--rounds", type=int, default=200, help="bursts of each (default: 200)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        _build(build)
        times = {
            queue: child.call(
                _measure,
                build,
                options.rounds,
                TASK_QUEUE_ENABLE=str(queue),
                ASCEND_OPP_PATH=str(build / "opp"),
                TORCH_DEVICE_BACKEND_AUTOLOAD="0",
                **dict.fromkeys((variables.NPU_ALLOCATION, variables.NPU_EXECUTOR_CACHE), "1"),
            )
            for queue in (0, 1, 2)
        }
    _print(times)


def _print(times: dict[int, dict[str, float]]) -> None:
    print("microseconds a call on the host, median of bursts; TASK_QUEUE_ENABLE")
    print(f"{'':40}" + "".join(f"{queue:>9}" for queue in times))
    others = (THEIRS, BUILT_IN, BUILT_IN_BY_NAME)
    for name in (*others, OURS):
        _print_row(name, [each[name] for each in times.values()])
    for name in others:
        _print_row(f"{name} / ours", [each[name] / each[OURS] for each in times.values()])
    print("where ours goes, each step with those before it")
    for name in (DISPATCHED, ALLOCATED, DESCRIBED, CALLED):
        _print_row(name, [each[name] for each in times.values()])
    _print_row("+ through the task queue (= ours)", [each[OURS] for each in times.values()])


def _print_row(name: str, values: Iterable[float]) -> None:
    print(f"{name:40}" + "".join(f"{value:9.2f}" for value in values))


def _measure(build: Path, rounds: int) -> dict[str, float]:
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
    ours, theirs = torch.ops.custom_pypto, torch.ops.custom_pypto_benchmark
    calls: dict[str, Callable[[], object]] = {
        OURS: lambda: ours.benchmark_launched(x),
        THEIRS: lambda: theirs.launched(x),
        BUILT_IN: lambda: torch.add(x, x),
        BUILT_IN_BY_NAME: lambda: torch.ops.aten.add(x, x),
        DISPATCHED: lambda: ours.benchmark_dispatched(x),
        ALLOCATED: lambda: ours.benchmark_allocated(x),
        DESCRIBED: lambda: ours.benchmark_described(x),
        CALLED: lambda: ours.benchmark_called(x),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            torch.npu.synchronize()
            times[name].append(timeit.timeit(call, number=_BURST) / _BURST * 1e6)
    torch.npu.synchronize()
    return {name: median(values) for name, values in times.items()}


def _build(folder: Path) -> None:
    simulator: Any = importlib.import_module("custom_pypto_simulator_build")
    simulator.build_kernels([SOURCES], folder / "opp")
    ours = plugin_library.build_project(SOURCES, folder)
    ours.rename(folder / "ours.so")
    _build_theirs(folder / "theirs.so")


def _build_theirs(library: Path) -> None:
    torch_npu = find_package("torch_npu")
    if torch_npu is None:
        raise SystemExit("benchmarks.launch needs torch_npu, which is not installed")
    include = torch_npu / "include"
    parts = (include / "third_party" / part for part in ("acl/inc", "op-plugin", "hccl/inc"))
    folders = (Path(sysconfig.get_path("include")), include, *parts)
    flags = [flag for folder in folders for flag in ("-isystem", str(folder))]
    flags += ["-DCURRENT_VERSION=V2R13", f"-L{torch_npu / 'lib'}", "-ltorch_npu"]
    torch_library.compile_library(SOURCES / "theirs.cpp", library, *flags)


if __name__ == "__main__":
    main()
