"""Which checks run with which variables, and the processes that run them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from custom_pypto_cli import subprocess_call

from . import isolated_checks
from .report import FASTER, SWITCHED, Result, Verdict

_MACHINE = "machine"
# A check has the name of its function without `check_`. The functions for the machine are in
# isolated_checks.py, the functions for ops in op_checks.py and in the suite.
_ADD = "add"
"""The check of the machine without which no op is called."""
_LAUNCH, _RESULTS, _REPEATS = "launch", "results", "repeats"
_NEEDED = (_LAUNCH, _RESULTS)
"""If one of these checks fails, no further check of the op is run."""
_QUEUED = (_REPEATS, "streams")
# The graph engine cannot be imported when npugraph_ex has been used.
_IN_GRAPHS = ("capture", "graph", "symbolic_graph", "npugraph_ex")
OF_NPUS = (*_QUEUED, *_IN_GRAPHS)
"""What the suite checks on an NPU alone, by rising risk."""


@dataclass(frozen=True)
class Run:
    """Checks that run in one process if none fails, and the variables of that process."""

    checks: tuple[str, ...]
    queue: str = ""
    switches: tuple[str, ...] = ()
    """The switches of `FASTER` that are on."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the report names."""
        queue = {"TASK_QUEUE_ENABLE": self.queue} if self.queue else {}
        return {**queue, **dict.fromkeys(self.switches, "1")}

    @property
    def setting(self) -> str:
        """The variables as text."""
        return " ".join(f"{name}={value}" for name, value in self.variables.items())


MACHINE = {"npu": Run((_ADD, "versions")), "cpu": Run((_ADD,))}
# By rising risk. A captured graph refuses TASK_QUEUE_ENABLE=2.
RUNS = {
    "npu": (
        Run((_LAUNCH,), "0"),
        Run((_RESULTS, *OF_NPUS), "1"),
        *(Run(OF_NPUS, "1", switches) for switches in SWITCHED),
        Run((_RESULTS, *_QUEUED), "2"),
        *(Run(_QUEUED, "2", switches) for switches in SWITCHED),
    ),
    "cpu": (Run((*_NEEDED, _REPEATS)),),
}


class Verification:
    """The checks of a device, and of ops on it."""

    def __init__(
        self, device: str, most: int, time_limit: float, environment: Mapping[str, str]
    ) -> None:
        """Let each check make at most `most` calls, and each process take `time_limit` seconds."""
        self._device = device
        self._most = most
        self._time_limit = time_limit
        self._environment = environment
        # By op, or for all by `_MACHINE`: why nothing more is run.
        self._stopped: dict[str, tuple[Verdict, str]] = {}

    def results(self, ops: Sequence[str]) -> Iterator[Result]:
        """Run the checks of the machine, then each run for every op: the least risk first."""
        yield from self._run(_MACHINE, MACHINE[self._device])
        for run in RUNS[self._device]:
            for op in ops:
                yield from self._run(op, run)

    def _run(self, subject: str, run: Run) -> Iterator[Result]:
        """Run the checks; after a failure the rest in a new process, if the device still works."""
        left = list(run.checks)
        while left:
            stopped = self._stopped.get(_MACHINE) or self._stopped.get(subject)
            if stopped and subject != _MACHINE:
                yield from (Result(subject, run.setting, each, *stopped) for each in left)
                return
            for result in self._results(subject, run, left[:]):
                left = [each for each in left if each != result.check]
                yield result
                self._note(result)
                if subject != _MACHINE and result.verdict is Verdict.FAILED:
                    yield from self._examine_device(result)

    def _note(self, result: Result) -> None:
        """Remember why nothing more is run."""
        if result.check not in (*_NEEDED, _ADD):
            return
        if result.verdict is Verdict.FAILED:
            what = "machine's check" if result.check == _ADD else "check"
            reason = f"not run: the {what} {result.check!r} failed"
            self._stopped[result.subject] = (Verdict.NOT_RUN, reason)
        elif result.verdict is Verdict.NONE:
            self._stopped[result.subject] = (Verdict.NONE, result.text)

    def _examine_device(self, failed: Result) -> Iterator[Result]:
        """Run torch's own add after a failure; if that fails too, no further check can tell."""
        for result in self._results(_MACHINE, Run((_ADD,)), [_ADD]):
            if result.verdict is Verdict.FAILED:
                since = f"torch's own add fails since {failed.check!r} of {failed.subject}"
                self._stopped[_MACHINE] = (Verdict.NOT_RUN, f"not run: {since}")
                text = f"{since}: {result.text}"
                yield Result(_MACHINE, "", _ADD, result.verdict, text, result.seconds)

    def _results(self, subject: str, run: Run, checks: list[str]) -> Iterator[Result]:
        """Run checks in a process; the last result is a failure if the process did not end well."""
        op = "" if subject == _MACHINE else subject
        start = time.monotonic()
        outcome = subprocess_call.call(
            isolated_checks.check,
            checks,
            op,
            self._device,
            self._most,
            time_limit=self._time_limit,
            environment={**self._environment, **dict.fromkeys(FASTER, "0"), **run.variables},
        )
        seconds = time.monotonic() - start
        progressed: Any = outcome.progress if isinstance(outcome.progress, dict) else {}
        done: Any = outcome.value if outcome.ok else progressed.get("done", [])
        for each in done:
            yield Result(subject, run.setting, **{**each, "verdict": Verdict(each["verdict"])})
            seconds -= each["seconds"]
        if not outcome.ok:
            call = progressed.get("call", "")
            text = f"{outcome.failure}\nthe last call was {call}" if call else outcome.failure
            # torch_npu prints the cause of some errors, which then say "as above".
            if outcome.trace not in text:
                text = f"{text}\nthe process printed, at the end:\n{outcome.trace}"
            # A process may also crash when it has done all.
            check = checks[min(len(done), len(checks) - 1)]
            yield Result(subject, run.setting, check, Verdict.FAILED, text, seconds)
