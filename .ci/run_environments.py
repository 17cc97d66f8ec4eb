"""Run environments of tox one after another: ``run_environments.py ENVIRONMENT ...``.

All of them run, whatever fails, and a table ends the output. The status is 1 if one failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_COUNTS = re.compile(r"^=* ?(\d+ (?:passed|failed|error).*) in [\d.]+s\b")
_REASON = re.compile(r"^(?:FAILED|ERROR:?|E  |\w+Error:|SystemExit:) *(.*)")


@dataclass(frozen=True)
class Outcome:
    """What a run of an environment gave."""

    counts: str
    """What pytest counted, of each of its runs."""
    reason: str
    """Empty if it passed."""


def read_outcome(status: int, lines: list[str]) -> Outcome:
    """Return the outcome of a run with this exit status and output."""
    counts = [found[1] for line in lines if (found := _COUNTS.match(line))]
    if status == 0:
        return Outcome(", ".join(counts), "")
    reasons = [found[1] for line in lines if (found := _REASON.match(line)) and found[1]]
    return Outcome(", ".join(counts), (reasons or [f"exit status {status}"])[0])


def _run(name: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "tox", "run", "-e", name]
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(_COLOR.sub("", line.rstrip()))
    return process.returncode, lines


def main(names: list[str]) -> int:
    """Run the environments; return how many failed, at most 1."""
    rows = []
    for name in names:
        begin = time.monotonic()
        outcome = read_outcome(*_run(name))
        rows.append((name, outcome, round(time.monotonic() - begin)))
    print(f"\n{'environment':<20}{'result':<8}{'seconds':>8}  counts, and the first reason")
    for name, outcome, seconds in rows:
        result = "failed" if outcome.reason else "ok"
        about = ": ".join(each for each in (outcome.counts, outcome.reason) if each)
        print(f"{name:<20}{result:<8}{seconds:>8}  {about}")
    return int(any(outcome.reason for _, outcome, _ in rows))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
