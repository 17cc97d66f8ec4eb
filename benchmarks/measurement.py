"""Times a case, its baselines and the peak in turn."""

from __future__ import annotations

import timeit
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

import torch

from benchmarks.case import Call, Case, Planned
from benchmarks.eager import Baseline
from benchmarks.peak import Peaks, Yardstick, unit_of
from benchmarks.row import Row
from benchmarks.timing import time_interleaved, torch_threads
from benchmarks.work import Work

# In shorter calls the second thread takes as long to wake up as to work.
_WORTH_TWO_THREADS = 1e-3


@dataclass(frozen=True)
class Bench:
    """The peaks, the kernels and the baselines that cases are timed with."""

    peaks: Peaks
    isas: Mapping[str, str | None]
    """The instruction set of the kernels of each op."""
    compiled: bool
    quick: bool
    _eager: Baseline = field(default_factory=Baseline)
    _bf16_scores: Baseline = field(default_factory=Baseline.with_bf16_scores)
    _compiler: Baseline = field(default_factory=Baseline.compiled)

    def measure(self, planned: Planned) -> Row:
        """Make a case's data, time it, and forget the data."""
        with torch_threads(planned.threads or torch.get_num_threads()):
            case = planned.make()
            with torch.inference_mode(planned.inference):
                return self._measure(planned, case)

    def times(
        self, calls: dict[str, Call], one_thread: tuple[str, ...] = (), *, warm: bool = True
    ) -> dict[str, float]:
        """Return the medians of interleaved calls; those in `one_thread` run on one.

        If `warm`, caches hold a call's own data as far as it fits, else its predecessor's.
        """
        budget, least = (0.5, 3) if self.quick else (3.0, 9)
        threads = dict.fromkeys(one_thread, 1)
        return time_interleaved(calls, threads=threads, warm=warm, budget=budget, least=least)

    def yardsticks(
        self, op: str, work: tuple[Work, ...], dtype: torch.dtype
    ) -> dict[str, Yardstick]:
        """Return the peaks that bound an op's work: of operations ("flop"), of memory ("byte")."""
        found = {}
        unit = unit_of(self.isas[op], dtype)
        if unit is not None and any(step.flop for step in work):
            arithmetic = self.peaks.arithmetic(unit)
            if arithmetic is not None:
                found["flop"] = arithmetic
        if any(step.bytes for step in work):
            found["byte"] = self.peaks.reading()
        return found

    def _measure(self, planned: Planned, case: Case) -> Row:
        yardsticks = self.yardsticks(planned.op, case.work, case.dtype)
        # The peak is measured next to our op, which is compared with it.
        calls = {"ours": case.ours}
        calls |= {name: yardstick.call for name, yardstick in yardsticks.items()}
        calls["eager"] = case.baseline(self._eager)
        if case.has_bf16_scores:
            calls["bf16_scores"] = case.baseline(self._bf16_scores)
        if case.in_bf16 is not None:
            calls["in_bf16"] = case.in_bf16
        if self.compiled:
            calls["compiled"] = case.baseline(self._compiler)
        if case.no_op is not None and planned.targets.over_no_op is not None:
            calls["no_op"] = case.no_op
        alone = ["clocked"]
        selecting: list[float] = []
        seconds = case.selection_seconds
        if seconds is not None and planned.targets.selection is not None:
            calls["clocked"] = lambda: selecting.append(seconds())
        if torch.get_num_threads() > 1 and _warm_seconds(case.ours) > _WORTH_TWO_THREADS:
            calls["one_thread"] = case.ours
            alone.append("one_thread")
        times = self.times(calls, tuple(alone))
        return Row(
            planned.op,
            planned.size,
            torch.get_num_threads(),
            {name: seconds for name, seconds in times.items() if name not in yardsticks},
            selecting=median(selecting) if selecting else None,
            at_peak=at_peak(case.work, yardsticks, times),
            targets=planned.targets,
        )


def at_peak(
    work: tuple[Work, ...], yardsticks: Mapping[str, Yardstick], times: Mapping[str, float]
) -> float | None:
    """Return how long work takes at the peaks, whose times are in `times`.

    None where a peak is not known, and for no work.
    """
    seconds = 0.0
    for step in work:
        parts = []
        for amount, peak in ((step.flop, "flop"), (step.bytes, "byte")):
            if amount and peak not in yardsticks:
                return None
            parts.append(amount * times[peak] / yardsticks[peak].amount if amount else 0)
        seconds += max(parts)
    return seconds or None


def _warm_seconds(call: Call) -> float:
    return timeit.repeat(call, number=1, repeat=2)[1]
