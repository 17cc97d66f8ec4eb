"""benchmarks/vllm runs, and keeps what it measured."""

import json
from pathlib import Path

from programs import run_python
from repository import ROOT


def test_small_matrices(tmp_path: Path) -> None:
    output = tmp_path / "run.jsonl"
    # A dense cache of the first decode fits, that of the second does not.
    options = ("--decodes", "1x3000", "2x3000", "--dense-gigabytes", "0.01", "--output", output)
    run_python("-m", "benchmarks.vllm", "--tiny", *options, cwd=ROOT)
    _, *run = map(json.loads, output.read_text().splitlines())
    rows = {(row["op"], row["sample"]): row["times"] for row in run}
    assert rows["step", "1 x 3000"].keys() == {"dense", "ours"}
    assert rows["step", "2 x 3000"].keys() == {"ours"}
