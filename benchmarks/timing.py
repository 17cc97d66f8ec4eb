"""Interleaved timing: alternatives are timed in one run, under the same conditions."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

import torch

_WORTH_SETTLING = 0.05


def time_interleaved(
    calls: Mapping[str, Callable[[], object]],
    *,
    threads: Mapping[str, int] | None = None,
    warm: bool = True,
    warmups: int = 2,
    least: int = 5,
    most: int = 2000,
    budget: float = 3.0,
) -> dict[str, float]:
    """Return the median seconds of each call.

    Each round makes every call once: a machine that slows down slows all alike. Rounds go on for
    `budget` seconds; there are at least `least` and at most `most`. A call too short for the clock
    is timed in groups that last 50 us or more. If `warm`, a call of less than 50 ms is made once
    before it is timed: threads are awake then, and caches hold its own data rather than its
    predecessor's. Calls in `threads` run with that many of torch's threads, the others with the
    present number.
    """
    number_of = dict.fromkeys(calls, torch.get_num_threads()) | dict(threads or {})
    # They turn garbage collection off: it would be charged to the call that triggers it.
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    group = {}
    settled = set()
    for name, call in calls.items():
        with torch_threads(number_of[name]):
            for _ in range(warmups):
                call()
            seconds = max(timers[name].timeit(1), 1e-7)
            group[name] = max(1, int(5e-5 / seconds))
            if warm and seconds < _WORTH_SETTLING:
                settled.add(name)
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + budget
    for number in range(most):
        if number >= least and time.perf_counter() > end:
            break
        for name, call in calls.items():
            with torch_threads(number_of[name]):
                if name in settled:
                    call()
                times[name].append(timers[name].timeit(group[name]) / group[name])
    return {name: median(values) for name, values in times.items()}


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Run with this number of torch's threads."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
