"""Interleaved timing: alternatives are timed in one run, under the same conditions."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles

import torch

Quartiles = list[float]
"""Three times in seconds; the middle one is the median."""

_LEAST_TIMED = 5e-5
_WORTH_WARMING = 0.05


@dataclass(frozen=True)
class Timed:
    """A call, and how it is timed."""

    call: Callable[[], object]
    prepare: Callable[[], object] | None = None
    """Runs before the calls that are timed together, untimed."""
    threads: int | None = None
    """How many of torch's threads it has; None: the present number."""

    def run(self) -> None:
        """Prepare, and make the call."""
        if self.prepare:
            self.prepare()
        self.call()

    def seconds(self, count: int) -> float:
        """Return the seconds of one of `count` calls."""
        if self.prepare:
            self.prepare()
        # timeit turns garbage collection off: it would be charged to the call that triggers it.
        return timeit.timeit(self.call, number=count) / count


def time_interleaved(
    calls: Mapping[str, Timed],
    seconds: float,
    *,
    warmups: int = 2,
    warm: bool = True,
    least: int = 5,
    most: int = 2000,
) -> dict[str, Quartiles]:
    """Return the quartiles of each call's time.

    Each round makes every call once: a machine that slows down slows all alike. Rounds go on for
    `seconds`; there are at least `least`, which is 2 or more, and at most `most`. If `warm`, a call
    of less than 50 ms is made once before it is timed: threads have started then, and caches hold
    its own data rather than its predecessor's.
    """
    counts, warmed = {}, set()
    for name, timed in calls.items():
        with torch_threads(timed.threads):
            for _ in range(warmups):
                timed.run()
            once = timed.seconds(1)
        # Of a call without preparation, as many are timed together as last 50 us.
        counts[name] = 1 if timed.prepare else max(1, int(_LEAST_TIMED / max(once, 1e-7)))
        if warm and once < _WORTH_WARMING:
            warmed.add(name)
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    for number in range(most):
        if number >= least and time.perf_counter() > end:
            break
        for name, timed in calls.items():
            with torch_threads(timed.threads):
                if name in warmed:
                    timed.run()
                times[name].append(timed.seconds(counts[name]))
    return {name: quantiles(values) for name, values in times.items()}


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Run with this number of torch's threads; None: with the present number."""
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
