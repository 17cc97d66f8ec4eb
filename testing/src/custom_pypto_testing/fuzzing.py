"""The fuzzer: random calls of an op in a child process, so that a crash is a finding too."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import torch
from custom_pypto_contract.guard import guard
from custom_pypto_contract.guarded import lifeline

from .case import describe_arguments
from .fuzz_inputs import FuzzCall, fuzz_call
from .fuzz_oracle import REASONS, TOO_LARGE, Judgement, judge

if TYPE_CHECKING:
    from .ops_under_test import Op

CALLS = 2000
_FAKE_MODE_EVERY = 64
"""FakeTensorMode takes ten times as long as meta, for the same fake."""
_TIME_LIMIT = 120.0
_MEMORY = 8 << 30
"""Bytes that a call may take in addition. Kernels must report that no more can be allocated."""
_MOST_CRASHES = 5
_MOST_SHOWN = 5
_COUNTED = ("run", "accepted", TOO_LARGE, *REASONS)


@dataclass(frozen=True)
class Series:
    """A part of the endless series that `seed` defines: `calls` calls, from number `first` on."""

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

    def count(self, judgement: Judgement) -> None:
        """Count a call that did not end its process."""
        self.counts["run"] += 1
        self.counts["accepted"] += judgement.accepted
        if judgement.reason:
            self.counts[judgement.reason] += 1

    def row(self, op: str) -> dict[str, int | str]:
        """Return the op's row of the table."""
        run, accepted = self.counts["run"], self.counts["accepted"]
        explained = {name: self.counts[name] for name in _COUNTED[2:]}
        counts = {"calls": run, "accepted": accepted, "refused": run - accepted}
        return {"op": op, **counts, **explained, "disagreements": len(self.faults)}


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
        fuzzed = _draw(op, tally.series.seed, number)
        parts.append(
            f"{len(found)} of them like call {number} ({', '.join(fuzzed.changes)}):\n{text}\n\n"
            f"It is run alone by --custom-pypto-fuzz=1,{tally.series.seed},{number}; its arguments:"
            f" {describe_arguments(fuzzed.call.arguments)}"
        )
    if len(kinds) > _MOST_SHOWN:
        parts.append(f"{len(kinds) - _MOST_SHOWN} more kinds of faults are not shown")
    return "\n\n".join(parts)


def _draw(op: Op, seed: int, number: int) -> FuzzCall:
    with warnings.catch_warnings():
        # Of conversions, such as of complex numbers to real ones.
        warnings.simplefilter("ignore")
        return fuzz_call(op, seed, number)


def _run_child(op: Op, tally: Tally, numbers: range, time_limit: float) -> int:
    """Run calls in a child process; return the number of the last one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with lifeline() as pipe:
            with warnings.catch_warnings():
                # Python warns of threads, which the child does not use.
                warnings.simplefilter("ignore")
                process = os.fork()
            if process == 0:
                _run_and_exit(op, tally.series.seed, numbers, time_limit, folder, pipe)
            _, status = os.waitpid(process, 0)
        judged = folder / "judged"
        text = judged.read_text(encoding="utf-8") if judged.exists() else ""
        # Text behind the last line break is a line that the process did not finish.
        lines = text.split("\n")[:-1]
        for number, line in enumerate(lines, numbers.start):
            judgement = Judgement(**json.loads(line))
            tally.count(judgement)
            if judgement.fault:
                tally.faults.append((number, " ".join(judgement.fault.splitlines())))
        last = numbers.start + min(len(lines), len(numbers) - 1)
        code = os.waitstatus_to_exitcode(status)
        if code or len(lines) < len(numbers):
            end = f"ends with status {code}"
            if code < 0:
                end = f"ends by {signal.Signals(-code).name}"
            if code == -signal.SIGALRM:
                end = f"is still in this call after {time_limit:g} seconds"
            tally.counts["run"] += 1
            written = (folder / "output").read_text(encoding="utf-8", errors="replace")
            tally.faults.append((last, f"the process {end}: {_ends(written.strip())}"))
        return last


def _ends(text: str, most: int = 3000) -> str:
    """The first and last characters: a sanitizer's report begins with the fault, others end so."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n[...]\n{text[-most:]}"


def _run_and_exit(
    op: Op, seed: int, numbers: range, time_limit: float, folder: Path, pipe: int
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
            with (folder / "judged").open("w", encoding="utf-8", buffering=1) as judged:
                _run_calls(op, seed, numbers, time_limit, judged)
            status = 0
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
    finally:
        # No code of pytest, and none of atexit, may run in this process.
        os._exit(status)


def _run_calls(op: Op, seed: int, numbers: range, time_limit: float, judged: TextIO) -> None:
    # A fork has no threads of OpenMP: torch would wait for them for ever.
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    # Ends the process, also in the middle of a kernel.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    for number in numbers:
        signal.setitimer(signal.ITIMER_REAL, time_limit)
        fuzzed = fuzz_call(op, seed, number)
        judgement = judge(fuzzed, in_fake_mode=number % _FAKE_MODE_EVERY == 0)
        judged.write(f"{json.dumps(asdict(judgement))}\n")
    signal.setitimer(signal.ITIMER_REAL, 0)
