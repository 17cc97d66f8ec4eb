"""The fuzzer: hostile calls of an op in a child process, so that a crash is a finding too."""

from __future__ import annotations

import faulthandler
import mmap
import os
import re
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import torch
from custom_pypto.core.call_text import describe_arguments
from custom_pypto_contract.guard import guard
from custom_pypto_contract.guarded import lifeline

from .fuzz_inputs import HostileCall, hostile_call
from .fuzz_oracle import REASONS, TOO_LARGE, judge

if TYPE_CHECKING:
    from .ops_under_test import Op

CALLS = 2000
_FAKE_MODE_EVERY = 16
"""FakeTensorMode takes ten times as long as meta, for the same fake."""
_TIME_LIMIT = 120.0
_MEMORY = 8 << 30
"""How much more memory than now a call may take; kernels must say that there is no more."""
_MOST_CRASHES = 5
_MOST_SHOWN = 5
_COUNTED = ("number", "run", "accepted", TOO_LARGE, *(reason.name for reason in REASONS))


@dataclass(frozen=True)
class Series:
    """Which calls are drawn: so many, beginning with number `first` of those of `seed`."""

    calls: int = CALLS
    seed: int = 0
    first: int = 0

    @classmethod
    def parse(cls, text: str) -> Series:
        """Read ``calls``, ``calls,seed`` or ``calls,seed,first``.

        Raises:
            ValueError: it is something else.
        """
        numbers = [int(each) for each in text.split(",")]
        if not 1 <= len(numbers) <= 3 or numbers[0] < 1 or min(numbers) < 0:
            raise ValueError(f"expected CALLS, CALLS,SEED or CALLS,SEED,FIRST, got {text!r}")
        return cls(*numbers)


@dataclass
class Tally:
    """What came of a series of calls of one op."""

    series: Series
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    faults: list[tuple[int, str]] = field(default_factory=list)
    """Numbers of calls, and what is wrong with them."""

    def row(self, op: str) -> dict[str, int | str]:
        """Return the op's row of the table."""
        run, accepted = self.counts["run"], self.counts["accepted"]
        explained = {name: self.counts[name] for name in _COUNTED[3:]}
        return {
            "op": op,
            "calls": run,
            "accepted": accepted,
            "refused": run - accepted,
            **explained,
            "disagreements": len(self.faults),
        }


def check_fuzzed(op: Op, series: Series, record: Callable[[str, object], None]) -> None:
    """No call of the series is at fault; `record` gets the op's row of the table.

    Only on CPU: a process with an NPU cannot be forked.
    """
    if op.contract is None or op.device != "cpu":
        return
    tally = fuzz(op, series)
    record("fuzzed", tally.row(op.name))
    if tally.faults:
        raise AssertionError(report(op, tally))


def fuzz(op: Op, series: Series, time_limit: float = _TIME_LIMIT) -> Tally:
    """Run a series of calls in child processes.

    A call that ends the process, or takes longer than `time_limit` seconds, is a fault; the next
    process goes on behind it.
    """
    tally = Tally(series)
    number, end = series.first, series.first + series.calls
    for _ in range(_MOST_CRASHES):
        number = _run_child(op, tally, range(number, end), time_limit) + 1
        if number >= end:
            break
    return tally


def report(op: Op, tally: Tally) -> str:
    """Return the first fault of each kind, with its call."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for number, text in tally.faults:
        kinds.setdefault(re.sub(r"\d+", "#", text)[:120], []).append((number, text))
    parts = [f"{op.name}: {len(tally.faults)} of {tally.series.calls} calls are at fault"]
    for found in [*kinds.values()][:_MOST_SHOWN]:
        number, text = found[0]
        hostile = _draw(op, tally.series.seed, number)
        parts.append(
            f"{len(found)} of them like call {number} ({', '.join(hostile.changes)}):\n{text}\n\n"
            f"It is run alone by --custom-pypto-fuzz=1,{tally.series.seed},{number}; its arguments:"
            f" {describe_arguments(hostile.call.arguments)}"
        )
    if len(kinds) > _MOST_SHOWN:
        parts.append(f"{len(kinds) - _MOST_SHOWN} more kinds of faults are not shown")
    return "\n\n".join(parts)


def _draw(op: Op, seed: int, number: int) -> HostileCall:
    with warnings.catch_warnings():
        # Of conversions, such as of complex numbers to real ones.
        warnings.simplefilter("ignore")
        return hostile_call(op, seed, number)


def _run_child(op: Op, tally: Tally, numbers: range, time_limit: float) -> int:
    """Run calls in a child process; return the number of the last one."""
    with (
        mmap.mmap(-1, mmap.PAGESIZE) as memory,
        tempfile.TemporaryDirectory() as name,
        memoryview(memory).cast("q") as counts,
    ):
        folder = Path(name)
        counts[0] = numbers.start
        with lifeline() as pipe:
            with warnings.catch_warnings():
                # Python warns of threads, which the child does not use.
                warnings.simplefilter("ignore")
                process = os.fork()
            if process == 0:
                _run_and_exit(op, tally.series.seed, numbers, counts, folder, pipe)
            end = _wait(process, counts, time_limit)
        with suppress(ChildProcessError):
            # It took too long.
            os.waitpid(process, 0)
        if not end and counts[1] < len(numbers):
            end = "ends with status 0"
        last = counts[0]
        for position, key in enumerate(_COUNTED[1:], start=1):
            tally.counts[key] += counts[position]
        faults = folder / "faults"
        for line in faults.read_text(encoding="utf-8").splitlines() if faults.exists() else ():
            number, _, text = line.partition(" ")
            tally.faults.append((int(number), text))
        if end:
            tally.counts["run"] += 1
            written = (folder / "output").read_text(encoding="utf-8", errors="replace")
            tally.faults.append((last, f"the process {end}: {_ends(written.strip())}"))
        return last


def _ends(text: str, most: int = 3000) -> str:
    """The first and last characters: a sanitizer's report begins with the fault, others end so."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n[...]\n{text[-most:]}"


def _wait(process: int, counts: memoryview, time_limit: float) -> str:
    """Wait until a child ends, or takes too long; return what was wrong with that, or ''."""
    number, since = counts[0], time.monotonic()
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                return f"ends by {signal.Signals(-code).name}"
            return f"ends with status {code}" if code else ""
        if counts[0] != number:
            number, since = counts[0], time.monotonic()
        elif time.monotonic() - since > time_limit:
            return f"is still in this call after {time_limit:g} seconds"
        time.sleep(0.01)


def _run_and_exit(
    op: Op, seed: int, numbers: range, counts: memoryview, folder: Path, pipe: int
) -> None:
    status = 1
    try:
        guard(pipe)
        # It writes to where pytest's own errors go.
        faulthandler.disable()
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            with (folder / "faults").open("w", encoding="utf-8", buffering=1) as faults:
                _run_calls(op, seed, numbers, counts, faults)
            status = 0
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
    finally:
        # No code of pytest, and none of atexit, may run in this process.
        os._exit(status)


def _run_calls(op: Op, seed: int, numbers: range, counts: memoryview, faults: TextIO) -> None:
    # A fork has no threads of OpenMP: torch would wait for them for ever.
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * mmap.PAGESIZE + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    for number in numbers:
        counts[0] = number
        hostile = hostile_call(op, seed, number)
        verdict = judge(hostile, in_fake_mode=number % _FAKE_MODE_EVERY == 0)
        counts[1] += 1
        counts[2] += verdict.accepted
        if verdict.reason:
            counts[_COUNTED.index(verdict.reason)] += 1
        if verdict.fault:
            faults.write(f"{number} {' '.join(verdict.fault.splitlines())}\n")
