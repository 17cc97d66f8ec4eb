"""custom-pypto verify, on an installed op and the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from custom_pypto_cli import main
from custom_pypto_testing.commands import verify


def test_an_op_passes_each_check_that_needs_no_npu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verify, "examine", lambda limit: {})
    file = tmp_path / "report.md"
    options = ("--device", "cpu", "--calls", "2", "--output", str(file))
    status = main(["verify", "npu_advance_step_flashattn", *options])
    report = file.read_text(encoding="utf-8")
    assert status == 0, report
    checks = json.loads(report.partition("```json\n")[2].partition("\n```")[0])["checks"]
    assert [(each["check"], each["verdict"]) for each in checks] == [
        (name, "passed") for name in ("add", "launch", "results", "repeats")
    ]
