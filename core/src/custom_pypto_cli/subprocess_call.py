"""Calls foreign code in an interpreter of its own: it may raise, crash or hang there."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from custom_pypto_contract import guarded
from custom_pypto_discovery.printable import shorten

TIME_LIMIT = 60.0
"""Seconds that a process may take by default."""

_MOST_LINES = 40
_LINES_OF_FAILURE = 12

# The process sees the modules that this one sees. `python -c` puts the current folder first, so
# only `sys`, which is built in, may be imported before the path is set. Output of foreign code goes
# to standard error: standard output is for the report alone. The process is short: the garbage
# collector would go through all of torch's objects several times for nothing.
_PROLOGUE = """\
import sys
sys.path[:] = {path}
import gc, json, os
gc.disable()
_reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
def report(value, key="value"):
    print(json.dumps({{key: value}}), file=_reports, flush=True)
def _report_exception(kind, error, trace):
    sys.__excepthook__(kind, error, trace)
    report(kind.__name__ + ": " + str(error), "exception")
sys.excepthook = _report_exception
"""


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    value: object = None
    """The report of one that ended well."""
    failure: str = ""
    """Why it did not end well, such as the text of its exception; empty when it did."""
    trace: str = ""
    """The end of what it wrote to standard error."""
    progress: object = None
    """The last value that it gave to `report_progress`."""
    timed_out: bool = False
    """Whether it did not end within its time."""

    @property
    def ok(self) -> bool:
        """Whether the process ran to its end."""
        return not self.failure

    @property
    def brief(self) -> str:
        """The first line of `failure`, if that is long its beginning."""
        line = self.failure.partition("\n")[0]
        return line if len(line) <= 100 else f"{line[:97]}..."


def call(
    function: Callable[..., object],
    *arguments: object,
    time_limit: float = TIME_LIMIT,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Call a function of a module in a new interpreter; see `run`.

    Its arguments must have a `repr` that is Python source, its result must be JSON.
    """
    module, name = function.__module__, function.__name__
    code = f"from {module} import {name} as function\nreport(function(*{arguments!r}))"
    return run(code, time_limit=time_limit, environment=environment)


def run(
    code: str, *, time_limit: float = TIME_LIMIT, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run ``code`` in a new interpreter of this Python; it must call ``report(json value)`` once.

    ``environment`` is added to that of this process. The code never makes this function raise:
    `Outcome.failure` reports an exception, a crash, an end without a report, and a time-out.
    """
    # Without the entry of `sys.path` that stands for the current folder.
    path = [entry for entry in sys.path if isinstance(entry, str) and entry]
    command = [sys.executable, "-c", _PROLOGUE.format(path=ascii(path)) + code]
    variables = {**os.environ, **(environment or {})}
    try:
        ended = guarded.run(command, time_limit=time_limit, env=variables)
    except OSError as error:
        return Outcome(failure=f"{sys.executable} cannot be started: {error}")
    return judge(*ended, time_limit)


def judge(status: int | None, output: str, errors: str, time_limit: float) -> Outcome:
    """Return how a process ended that wrote `output` and `errors`.

    ``status`` is that of `subprocess`; None if the process had to be stopped after its time.
    """
    reports = _reports(output)
    lines = errors.strip().splitlines()
    outcome = Outcome(trace=_join(lines[-_MOST_LINES:]), progress=reports.get("progress"))
    if status == 0 and "value" in reports:
        return replace(outcome, value=reports["value"])
    if status is not None and status > 0 and "exception" in reports:
        return replace(outcome, failure=shorten(str(reports["exception"])))
    # It gave no reason; its output may.
    end = f"did not end within {time_limit:g} s" if status is None else describe_status(status)
    last = _join(lines[-_LINES_OF_FAILURE:])
    failure = f"{end}\nits output ended with:\n{last}" if last else end
    return replace(outcome, failure=failure, timed_out=status is None)


def report_progress(value: object) -> None:
    """Report, in such a process, how far it is; see `Outcome.progress`. Does nothing elsewhere."""
    report = getattr(sys.modules["__main__"], "report", None)
    if report is not None:
        report(value, "progress")


def describe_status(status: int) -> str:
    """Return how a process ended that gave no report; `status` is that of `subprocess`."""
    if status < 0:
        known = {each.value for each in signal.Signals}
        name = signal.Signals(-status).name if -status in known else f"signal {-status}"
        return f"crashed with {name}"
    if status > 0:
        return f"ended with status {status}"
    return "ended with status 0 before it was done, as a call of exit() does"


def _reports(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for line in text.splitlines():
        try:
            found.update(json.loads(line))
        except (TypeError, ValueError, RecursionError):
            # Half a report, or output of foreign code.
            continue
    return found


def _join(lines: Sequence[str]) -> str:
    return shorten("\n".join(lines))
