"""custom-pypto verify, on the installed ops and the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from custom_pypto import core
from custom_pypto_cli import main, plugin_list, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_testing.commands import verify
from custom_pypto_testing.subject import Subject
from custom_pypto_testing.verification import in_child
from custom_pypto_testing.verification.results import check_results


def test_an_op_passes_each_check_that_needs_no_npu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def call(function: Callable[..., object], *given: Any, **options: Any) -> Outcome:
        return Outcome(value=function(*given))

    monkeypatch.setattr(subprocess_call, "call", call)
    monkeypatch.setattr(plugin_list, "load", core.plugins)
    monkeypatch.setattr(verify, "examine", lambda limit: {})
    file = tmp_path / "report.md"
    options = ("--device", "cpu", "--calls", "2", "--output", str(file))
    status = main(["verify", "npu_advance_step_flashattn", *options])
    report = file.read_text(encoding="utf-8")
    assert status == 0, report
    checks = json.loads(report.partition("```json\n")[2].partition("\n```")[0])["checks"]
    assert [(each["check"], each["verdict"]) for each in checks] == [
        (name, "passed") for name in ("add", "kernels", "launch", "results", "repeats", "timing")
    ]


def test_a_check_runs_in_a_process_of_its_own() -> None:
    op = "add_custom"
    outcome = subprocess_call.call(in_child.check_op, "launch", op, op, "cpu", 1)
    assert outcome.ok, outcome.failure
    text = "float16: add_custom(self=float16[7, 33], other=float16[7, 33])"
    assert outcome.progress == text
    assert isinstance(outcome.value, dict)
    assert (outcome.value["text"], outcome.value["problem"]) == (text, "")


def test_an_op_without_samples_gets_calls_that_are_drawn_from_its_contract() -> None:
    noted: list[str] = []
    op = replace(Subject.of_plugin("add_custom").op_on("add_custom", "cpu"), cases=())
    assert check_results(op, 3, noted.append).numbers["difference"].keys() == {
        *("drawn-0", "drawn-1", "drawn-2"),
    }
    assert noted[0].startswith("drawn-0: add_custom(self=")
