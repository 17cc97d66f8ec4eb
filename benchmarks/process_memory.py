"""Resident memory of this process, and its peak. Linux only: it reads /proc."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path


def growth(call: Callable[[], object]) -> int | None:
    """Return by how many bytes a call raises the peak of resident memory; None: unknown."""
    try:
        # Resets the peak to the present resident memory (proc(5)).
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _kilobytes("/proc/self/status", "VmRSS")
    call()
    return (_kilobytes("/proc/self/status", "VmHWM") - before) * 1024


def resident() -> int:
    """Return the resident bytes, after free heap memory was returned to the system."""
    trim_heap()
    return _kilobytes("/proc/self/status", "VmRSS") * 1024


def trim_heap() -> None:
    """Return free heap memory to the system, so that the growth of the next call counts it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def available() -> int:
    """Return how many bytes can be allocated without swapping."""
    return _kilobytes("/proc/meminfo", "MemAvailable") * 1024


def _kilobytes(file: str, name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path(file).read_text(), re.M)
    assert found is not None
    return int(found[1])
