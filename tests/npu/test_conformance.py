"""The conformance suite on a simulated NPU, as an author runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# torch_npu can be imported under the simulator only, and warns of the missing CANN.
SUITE = """
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import custom_pypto_simulator
    import torch_npu

from custom_pypto_testing import Conformance


class TestAddCustom(Conformance):
    plugin = "add_custom"
"""


def test_right_op_passes_on_an_npu(opp: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, "--custom-pypto-device=npu", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": opp["custom"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "::test_returns_what_the_reference_returns[add_custom-float16-npu]" in done.stdout
    assert "::test_agrees_with_its_contract[add_custom-npu]" in done.stdout
    assert " skipped" not in done.stdout.splitlines()[-1]
