"""One line that says where a timing was taken."""

from __future__ import annotations

import os
import platform
from pathlib import Path

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


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: platform knows
    return platform.processor() or platform.machine()
