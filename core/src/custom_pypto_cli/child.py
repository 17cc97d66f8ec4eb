"""Foreign code, run in an interpreter of its own: it may raise, crash or hang there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

TIME_LIMIT = 60.0
"""Seconds that one child may take when nothing else is said."""

# The child sees the modules that this process sees: `python -c` alone would put the current folder
# first. What foreign code prints goes to standard error: standard output is for the report alone.
_PROLOGUE = """\
import json, os, sys
sys.path[:] = json.loads({path!r})
_reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
def report(value, key="value"):
    print(json.dumps({{key: value}}), file=_reports, flush=True)
def _told(kind, error, trace):
    sys.__excepthook__(kind, error, trace)
    report(kind.__name__ + ": " + str(error), "exception")
sys.excepthook = _told
"""


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    value: object = None
    """What the child reported, when it ended well."""
    failure: str = ""
    """Why it did not end well, such as the text of its exception; empty when it did."""
    trace: str = ""
    """The end of what it wrote to standard error."""

    @property
    def ok(self) -> bool:
        """Whether the child ran to its end."""
        return not self.failure


def run(
    code: str, *, time_limit: float = TIME_LIMIT, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run ``code`` in a new interpreter of this Python; it may call ``report(json value)`` once.

    ``environment`` is added to that of this process. Never raises for what the code does: an
    exception, a crash by a signal and a time-out are all told in `Outcome.failure`.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROLOGUE.format(path=json.dumps(sys.path)) + code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        return Outcome(failure=f"{sys.executable} cannot be started: {error}")
    try:
        text, errors = process.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        # The whole session: a grandchild that holds the pipes would keep us waiting.
        os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
        return Outcome(failure=f"did not end within {time_limit:g} s", trace=_end_of(errors))
    trace = _end_of(errors)
    reports: dict[str, object] = {}
    for line in text.splitlines():
        reports.update(json.loads(line))
    if process.returncode < 0:
        return Outcome(failure=f"crashed with {_signal_name(-process.returncode)}", trace=trace)
    if process.returncode > 0:
        told = reports.get("exception", f"ended with status {process.returncode}")
        return Outcome(failure=str(told), trace=trace)
    return Outcome(value=reports.get("value"), trace=trace)


def _end_of(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-12:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
