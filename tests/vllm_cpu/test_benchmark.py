"""benchmarks/vllm runs every part, and keeps what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from repository import ROOT


def test_small_matrices(tmp_path: Path) -> None:
    cells = ["--decodes", "1x3000", "2x3000", "--prefills", "1x300"]
    # A dense cache of the first decode fits, that of the second does not.
    limit = ["--dense-gigabytes", "0.01"]
    output = ["--output", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.vllm", "--tiny", *cells, *limit, *output],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    one, two = run["cells"]["1 x 3000"], run["cells"]["2 x 3000"]
    for table in ("layer", "step"):
        assert "dense" in one[table]
        assert "dense" not in two[table]
    assert 0.9 < one["overlap"] < 1
    assert all(seconds > 0 for seconds in two["parts"].values())
    assert all(each["seconds"] > 0 for each in run["cells"]["1 x 300"]["prefill"].values())


def test_the_reference_is_of_the_library_that_vllm_chooses() -> None:
    """On CPUs without AVX-512 it is another one, and a process cannot load both."""
    code = """
import torch
torch.cpu._is_avx512_supported = lambda: False
import vllm._custom_ops
from benchmarks.vllm.layer import make_dense
make_dense(64, 1)()
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
