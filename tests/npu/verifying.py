"""Runs ``custom-pypto verify`` with processes that are forked: no check waits for imports."""

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from simulated import Simulated

# As the prologue of subprocess_call.py. The alarm stands in for the end by the parent.
_RUN = """
import json, signal, sys
def report(value, key="value"):
    print(json.dumps({{key: value}}), flush=True)
signal.alarm({seconds})
{arm}
try:
    exec({code!r})
except Exception as error:
    report(type(error).__name__ + ": " + str(error), "exception")
    raise
"""


@dataclass(frozen=True)
class Verified:
    """What the command did."""

    status: int
    report: str
    data: Any
    """The JSON of the report."""

    def of(self, op: str) -> list[dict[str, Any]]:
        """The results of the checks of an op, or of the machine."""
        return [each for each in self.data["checks"] if each["subject"] == op]


class Verify:
    """Runs the command."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, machines: Simulated, opp: str, folder: Path
    ) -> None:
        """Use the kernels of `opp`."""
        self._machines = machines
        self._file = folder / "report.md"
        self._variables = {"ASCEND_CUSTOM_OPP_PATH": opp}
        self._arm: Mapping[str, str] = {}
        monkeypatch.setattr(subprocess_call, "run", self._run_child)
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", opp)

    def __call__(self, *arguments: str, arm: Mapping[str, str] | None = None) -> Verified:
        """Run it; `arm` is code that runs before the checks it names."""
        self._arm = arm or {}
        status = main(["verify", *arguments, "--output", str(self._file)])
        report = self._file.read_text(encoding="utf-8")
        return Verified(status, report, read_json(report))

    def _run_child(
        self,
        code: str,
        *,
        time_limit: float = subprocess_call.TIME_LIMIT,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        variables = {**self._variables, **(environment or {})}
        arms = [text for check, text in self._arm.items() if f"(*(['{check}'" in code]
        script = _RUN.format(code=code, seconds=int(time_limit), arm="\n".join(arms))
        done = self._machines.server(variables).run(script, [], variables)
        status = None if done.returncode == -signal.SIGALRM else done.returncode
        return subprocess_call.judge(status, done.stdout, done.stderr, time_limit)


def read_json(report: str) -> Any:
    """The JSON at the end of a report."""
    return json.loads(report.partition("```json\n")[2].partition("\n```")[0])
