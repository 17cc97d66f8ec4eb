"""Runs the checks, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from custom_pypto_cli import subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_discovery.printable import shorten

from custom_pypto_testing import progress
from custom_pypto_testing.verification import in_child
from custom_pypto_testing.verification.checks import (
    ADD,
    FASTER,
    OF_MACHINE,
    OF_OPS,
    QUEUE,
    Check,
    checks_on,
)
from custom_pypto_testing.verification.result import MACHINE, Result, Verdict

_VERBS = {Verdict.FAILED: "failed", Verdict.NOT_RUN: "was not run"}


class Verification:
    """The checks of a device, and of ops on it."""

    def __init__(
        self,
        device: str,
        ops: Sequence[tuple[str, str]],
        most: int,
        time_limit: float,
        environment: Mapping[str, str],
    ) -> None:
        """Take the ops with their plugins; each check makes at most `most` calls of an op."""
        self._device = device
        self._ops = ops
        self._most = most
        self._time_limit = time_limit
        self._environment = environment
        self._machine = checks_on(device, OF_MACHINE)
        self._of_ops = checks_on(device, OF_OPS)
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._broken = ""

    def results(self) -> Iterator[Result]:
        """Run the checks of the machine, then each check of every op: the least risk first."""
        for check in self._machine:
            yield self._result(check, MACHINE, in_child.check_machine, self._device)
        add = self._verdicts[MACHINE, ADD]
        if add is not Verdict.PASSED:
            self._broken = f"the machine's check {ADD!r} {_VERBS[add]}"
        for check in self._of_ops:
            for plugin, op in self._ops:
                given = (plugin, op, self._device, self._most)
                result = self._result(check, op, in_child.check_op, *given)
                yield result
                if result.verdict is Verdict.FAILED:
                    yield from self._examine_device(result)

    def _result(
        self, check: Check, subject: str, function: Callable[..., object], *given: object
    ) -> Result:
        """Run one check, if what it needs has passed."""
        needed = self._verdicts.get((subject, check.needs), Verdict.PASSED)
        if self._broken:
            result = Result(subject, check.name, Verdict.NOT_RUN, f"not run: {self._broken}")
        elif needed is Verdict.NONE:
            text = f"{check.needs} does not apply"
            result = Result(subject, check.name, Verdict.NONE, text)
        elif needed is not Verdict.PASSED:
            text = f"not run: the check {check.needs!r} {_VERBS[needed]}"
            result = Result(subject, check.name, Verdict.NOT_RUN, text)
        else:
            result = self._run(check, subject, function, *given)
        self._verdicts[subject, check.name] = result.verdict
        return result

    def _run(
        self, check: Check, subject: str, function: Callable[..., object], *given: object
    ) -> Result:
        start = time.monotonic()
        total = len(self._machine) + len(self._of_ops) * len(self._ops)
        with progress.shown(len(self._verdicts), total, f"{subject}: {check.name}"):
            outcome = self._call(check, function, *given)
        return replace(_judge(subject, check.name, outcome), seconds=time.monotonic() - start)

    def _call(self, check: Check, function: Callable[..., object], *given: object) -> Outcome:
        switches = {name: str(int(name == check.switch)) for name in FASTER}
        queue = {QUEUE: check.queue} if check.queue else {}
        return subprocess_call.call(
            function,
            *(check.name, *given),
            time_limit=self._time_limit,
            environment={**self._environment, **switches, **queue},
        )

    def _examine_device(self, failed: Result) -> Iterator[Result]:
        """Run torch's own add after a failure; if that fails too, no further check can tell."""
        [add] = [check for check in self._machine if check.name == ADD]
        outcome = self._call(add, in_child.check_machine, self._device)
        result = _judge(MACHINE, add.name, outcome)
        if result.verdict is Verdict.FAILED:
            since = f"torch's own add fails since {failed.check!r} of {failed.subject}"
            self._broken = since
            yield replace(result, text=f"{since}: {result.text}")


def _judge(subject: str, check: str, outcome: Outcome) -> Result:
    if not outcome.ok:
        text = outcome.failure
        if isinstance(outcome.progress, str) and outcome.progress:
            text = f"{text}\nthe last call was {outcome.progress}"
        # torch_npu prints the cause of some errors, which then say "as above".
        if outcome.trace not in text:
            text = f"{text}\nthe process printed, at the end:\n{outcome.trace}"
        return Result(subject, check, Verdict.FAILED, text)
    finding: Any = outcome.value
    if finding["problem"]:
        text = shorten(finding["problem"])
        return Result(subject, check, Verdict.FAILED, text, numbers=finding["numbers"])
    verdict = Verdict.PASSED if finding["applies"] else Verdict.NONE
    return Result(subject, check, verdict, shorten(finding["text"]), numbers=finding["numbers"])
