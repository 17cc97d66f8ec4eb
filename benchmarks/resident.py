"""The memory that this process has, and its peak. Linux only: it reads /proc."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path


def growth(call: Callable[[], object]) -> int | None:
    """Return by how many bytes a call raises what is resident, at its peak; None: cannot tell."""
    try:
        # Sets the peak to what is resident now (proc(5)).
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _kilobytes("/proc/self/status", "VmRSS")
    call()
    return (_kilobytes("/proc/self/status", "VmHWM") - before) * 1024


def give_back() -> None:
    """Return what is free in malloc's own stock, so that the next call's growth counts it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def available() -> int:
    """Return how many bytes of the machine are free, or can be made so without swapping."""
    return _kilobytes("/proc/meminfo", "MemAvailable") * 1024


def _kilobytes(file: str, name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path(file).read_text(), re.M)
    assert found is not None
    return int(found[1])
