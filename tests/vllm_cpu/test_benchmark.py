"""benchmarks/vllm runs every part, and keeps what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from repository import ROOT


def test_small_matrices(tmp_path: Path) -> None:
    cells = ["--decodes", "1x3000", "2x3000"]
    # A dense cache of the first decode fits, that of the second does not.
    limit = ["--dense-gigabytes", "0.01"]
    output = ["--output", str(tmp_path / "run.jsonl")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.vllm", "--tiny", *cells, *limit, *output],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    _, *run = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    rows = {(row["op"], row["sample"]): row["times"] for row in run}
    assert rows["step", "1 x 3000"].keys() == {"dense", "ours"}
    assert rows["step", "2 x 3000"].keys() == {"ours"}
    assert rows["selection", "2 x 3000"].keys() == {"bf16", "int8"}
