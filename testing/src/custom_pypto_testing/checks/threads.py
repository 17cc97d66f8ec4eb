"""Results for any number of threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from custom_pypto_testing.case import Case, describe_arguments
from custom_pypto_testing.drawn_samples import as_sample
from custom_pypto_testing.large_calls import kept_dims, large_calls
from custom_pypto_testing.outputs import Run
from custom_pypto_testing.timing.interleaved import torch_threads

from .values import compare_runs, compare_with_reference, run_of

if TYPE_CHECKING:
    from custom_pypto_testing.ops_under_test import Op

_REFERENCE_TIME = 0.3
"""Seconds of its thread after which the reference gets no further large call of an op; some loop
over rows in Python."""
Result = TypeVar("Result")
_WORDS = {2: "two", 3: "three"}
_TASKS = Path("/proc/self/task")
_POLLS = 500


def check_threads(case: Case) -> None:
    """One thread and two give the same bits, in outputs and in mutated arguments."""
    _compare(case, 2, _run_with_threads(case, 1))


def check_large_calls(op: Op, note: Callable[[str], None]) -> None:
    """Large calls agree with the reference, and are bit for bit the same with 1, 2 and 3 threads.

    Long sums differ from the reference by more than its tolerance, so it is run only where the
    large dim is one of the results'. `note` gets what this did not check: it is told if no call,
    and no sample, was split among threads. Only on the CPU: an NPU has threads of its own.
    """
    if op.device != "cpu":
        note(f"threads: not compared on {op.device}, which has threads of its own")
        return
    kept = set() if op.contract is None else kept_dims(op.contract)
    drawn = [] if op.contract is None else list(large_calls(op.contract))
    has_split, left = False, _REFERENCE_TIME
    uncompared: list[str] = []
    for dim, given in drawn:
        assert op.contract is not None
        case = Case(op, as_sample(op.contract, given))
        try:
            has_split = has_split or is_split(case)
            one = _run_with_threads(case, 1)
            for threads in (2, 3):
                _compare(case, threads, one)
            if op.reference is not None and dim in kept:
                if left > 0:
                    start = time.thread_time()
                    compare_with_reference(case, one)
                    left -= time.thread_time() - start
                else:
                    uncompared.append(dim)
        except AssertionError as error:
            called = f"{op.name}, called with {describe_arguments(given)}"
            raise AssertionError(f"{called}: {error}") from error
    if uncompared:
        note(
            f"large calls: where {', '.join(uncompared)} is large, the results are not compared"
            f" with the reference, which took more than {_REFERENCE_TIME} s for the others"
        )
    if not has_split and not any(map(is_split, op.cases)):
        note(
            "threads: no call was split among threads, neither a sample nor one of"
            f" {len(drawn)} large calls; if the kernel uses threads, give it a sample that is large"
            " enough"
        )


def is_split(case: Case) -> bool:
    """Return whether other threads work when torch may use two, and none when it may use one."""
    found = []
    for count in (1, 2):
        with torch_threads(count):
            found.append(run_watched(case.copy().run)[1])
    idle, working = found
    return bool(working - idle)


def _compare(case: Case, count: int, one: Run) -> None:
    found = _run_with_threads(case, count)
    compare_runs(case, found, one, f"with {_WORDS[count]} threads from one")


def _run_with_threads(case: Case, count: int) -> Run:
    with torch_threads(count):
        return run_of(case.copy())


def run_watched(run: Callable[[], Result]) -> tuple[Result, set[int]]:
    """Run a function; return its result, and the ids of other threads that worked meanwhile.

    It first waits for other threads: OpenMP's look for work for a while before they sleep. Where
    they never sleep (OMP_WAIT_POLICY=active) they count as working.
    """
    before = _sleeping()
    for _ in range(_POLLS):
        if None not in before.values():
            break
        time.sleep(0.001)
        before = _sleeping()
    result = run()
    return result, {thread for thread, slept in _sleeping().items() if before.get(thread) != slept}


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
