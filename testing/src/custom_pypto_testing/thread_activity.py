"""Which threads of the process work while a function runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_TASKS = Path("/proc/self/task")
_POLLS = 500


def run_watched(run: Callable[[], Result]) -> tuple[Result, set[int]]:
    """Run a function; return its result, and the ids of other threads that worked meanwhile.

    Threads that work before it begins are waited for: those of OpenMP look for work for a while
    before they sleep. Where they never sleep (OMP_WAIT_POLICY=active) they count as working.
    """
    before = _sleeping()
    for _ in range(_POLLS):
        if None not in before.values():
            break
        time.sleep(0.001)
        before = _sleeping()
    result = run()
    after = _sleeping()
    return result, {thread for thread, slept in after.items() if before.get(thread) != slept}


def _sleeping() -> dict[int, int | None]:
    """Return how often each other thread has left the CPU; None for one that is on it."""
    own = threading.get_native_id()
    found: dict[int, int | None] = {}
    for task in _TASKS.iterdir():
        try:
            lines = (task / "status").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            # It has ended.
            continue
        values = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        switches = int(values["voluntary_ctxt_switches"])
        found[int(task.name)] = None if values["State"].startswith("R") else switches
    found.pop(own)
    return found
