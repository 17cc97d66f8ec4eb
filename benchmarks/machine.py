"""The machine that a run was made on, and the instruction sets of the kernels."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import custom_pypto.core
import torch


def describe() -> dict[str, str | int]:
    """Return the processor, its vector extension as torch sees it, threads and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "isa": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def isas() -> dict[str, str | None]:
    """Return the instruction set of the CPU kernels of each op that is installed."""
    core = custom_pypto.core
    return {op.name: core.cpu_isa(op.plugin) for op in core.ops()}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: platform knows
    return platform.processor() or platform.machine()
