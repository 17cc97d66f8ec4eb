"""benchmarks/vllm runs every part, and keeps what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from repository import ROOT


def test_small_matrices(tmp_path: Path) -> None:
    cells = ["--decodes", "1x300", "2x300", "--prefills", "1x300"]
    # A dense cache of the first decode fits, that of the second does not.
    limit = ["--gigabytes", "0.002"]
    output = ["--output", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.vllm", "--tiny", *cells, *limit, *output],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    for table in ("layer", "steps"):
        assert "dense" in run[table]["1 x 300"]
        assert "dense" not in run[table]["2 x 300"]
    assert run["overlap"]["1 x 300"] == 1
    assert all(seconds > 0 for seconds in run["parts"]["2 x 300"].values())
    assert {seconds > 0 for seconds, _ in run["prefills"]["1 x 300"].values()} == {True}
