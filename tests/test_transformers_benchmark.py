"""The benchmark of transformers' models: what it leaves out, counts and reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import process_memory
from benchmarks.peak import Peaks, Yardstick
from benchmarks.transformers import parts
from benchmarks.transformers.__main__ import main, run_worker
from benchmarks.transformers.cell import (
    DYNAMIC,
    GROWING,
    LONGEST_SECONDS,
    SDPA,
    Cell,
    Cost,
    Job,
    Measured,
    Phase,
    cells,
)
from benchmarks.transformers.goals import LONG, SHORT, goals
from benchmarks.transformers.results import Results

GIB = 2**30


def test_growth_is_the_peak_and_not_what_is_kept() -> None:
    size = 2**28
    grown = process_memory.growth(lambda: torch.ones(size, dtype=torch.uint8).max())
    assert grown is not None
    # The system counts pages in batches for each thread.
    assert 0.99 * size <= grown < 1.5 * size


@pytest.mark.parametrize(
    ("phase", "context", "batch", "seconds", "available", "refusal"),
    [
        ("decode", 16384, 1, 1.0, 8 * GIB, "needs 16 GiB"),
        ("decode", 4096, 8, 1.0, 8 * GIB, "needs 32 GiB"),
        ("prefill", 4096, 1, 1.0, 8 * GIB, "needs 16 GiB"),
        ("decode", 16384, 1, 1.0, 18 * GIB, None),
        ("decode", 4096, 1, LONGEST_SECONDS, 8 * GIB, "takes 10 min"),
    ],
)
def test_cost_of_decoding_grows_with_the_context_and_that_of_a_prompt_with_its_square(
    phase: Phase, context: int, batch: int, seconds: float, available: int, refusal: str | None
) -> None:
    cost = Cost(Cell(phase, 1024), seconds, GIB)
    assert cost.refusal(Cell(phase, context, batch), lambda: available) == refusal


def test_cheaper_cells_come_before_those_that_are_estimated_from_them() -> None:
    planned = cells([16384, 4096], [4096, 1024], with_batch=True)
    assert [cell.name for cell in planned] == [
        "decode 4K",
        "decode 16K",
        "decode 16K x 8",
        "prefill 1K",
        "prefill 4K",
    ]


def test_parts_of_a_step_are_the_whole_step() -> None:
    x = torch.ones(64, 64)
    found = parts.measure(lambda: torch.nn.functional.linear(x, x).relu(), 3)
    assert found[parts.PROJECTIONS] > 0
    assert found[parts.REST] > 0
    assert found[parts.INDEXER] == found[parts.ATTENTION] == 0


def _results(indexer: float, rest: float, sdpa: float, logits: float) -> Results:
    """Two decode steps, with a second for the weights and one for the attention op."""
    results = Results({}, reading=1e6, weight_bytes={"tiny": 10**6})
    for cell in (SHORT, LONG):
        grown = cell.context / SHORT.context
        split = {parts.INDEXER: indexer * grown, parts.ATTENTION: 1.0, parts.REST: rest}
        if cell == LONG:
            split[parts.REST] *= rest
        for way in (DYNAMIC, GROWING):
            seconds = sum(split.values())
            results.measured.append(
                Measured("tiny", way, cell, seconds, parts=split, logits=(1.0, 0.0))
            )
    results.measured.append(Measured("tiny", SDPA, SHORT, sdpa, logits=(1.0, logits)))
    results.measured.append(Measured("tiny", SDPA, LONG, left_out="needs 99 GiB"))
    return results


def test_goals_are_met_or_not() -> None:
    good = list(goals(_results(indexer=1.0, rest=1.0, sdpa=100.0, logits=0.001)))
    # The two ratios at 16K, the logits, a step against its floor at 16K and 128K, the growth; none
    # of what was left out.
    assert [goal.met for goal in good] == [True] * 6
    bad = goals(_results(indexer=1.0, rest=4.0, sdpa=100.0, logits=0.1))
    assert [goal.met for goal in bad] == [False] * 6


def test_floor_of_a_step_is_reading_the_weights_and_our_ops() -> None:
    results = _results(indexer=1.0, rest=1.5, sdpa=100.0, logits=0.001)
    over = [goal for goal in goals(results) if goal.what.startswith("a step against")]
    # 1 s for the weights, 1 for the attention, 1 and 8 for the indexer.
    assert [goal.measured for goal in over] == [3.5 / 3, (8 + 1 + 1.5**2) / 10]
    assert {goal.target for goal in over} == {1.5}


def _python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Job:
    """Put a script in Python's place for the next worker."""
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(file))
    return Job("tiny", SDPA, [SHORT, LONG], "bfloat16", quick=True, threads=1)


def test_what_the_system_ended_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _python(tmp_path, monkeypatch, "kill -9 $$")
    assert [(m.cell, m.left_out) for m in run_worker(job)] == [
        (SHORT, "signal 9"),
        (LONG, "signal 9"),
    ]


def test_failing_worker_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _python(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(subprocess.CalledProcessError):
        list(run_worker(job))


def test_run_writes_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compiled by test_benchmarks.py; its speed is not looked at here.
    yardstick = Yardstick(lambda: None, 1)
    monkeypatch.setattr(Peaks, "__init__", lambda self: None)
    monkeypatch.setattr(Peaks, "reading", lambda self: yardstick)
    # Each is a process that imports transformers.
    monkeypatch.setattr("benchmarks.transformers.__main__.WAYS", (SDPA, GROWING))
    output = tmp_path / "out" / "run"
    arguments = ["--models", "tiny", "--contexts", "256", "512", "--quick", "--output", str(output)]
    assert main(arguments) == 0
    run = json.loads(output.with_suffix(".json").read_text())
    assert [row["way"] for row in run["results"]] == ["sdpa"] * 2 + ["GrowingCache"] * 2
    assert all(row["seconds"] > 0 for row in run["results"])
    assert all(row["parts"][parts.INDEXER] > 0 for row in run["results"][2:])
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "GrowingCache" in capsys.readouterr().out
