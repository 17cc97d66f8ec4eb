"""The conformance suite on a simulated NPU, as an author runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from repository import ROOT, copy_sources

# torch_npu can be imported under the simulator only, and warns of the missing CANN.
SUITE = """
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import custom_pypto_simulator
    import torch_npu

from custom_pypto_testing import Conformance


class TestPlugin(Conformance):
    plugin = "{plugin}"
"""
PIP = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index")


def run_suite(plugin: str, opp: str, folder: Path, site: str = "") -> str:
    """Run the suite of an installed plugin on an NPU; all tests must pass."""
    (folder / "test_suite.py").write_text(SUITE.format(plugin=plugin), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", folder, "--custom-pypto-device=npu", folder / "test_suite.py"],
        cwd=folder,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": opp, "PYTHONPATH": site},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout.splitlines()[-1]
    return done.stdout


def test_right_op_passes_on_an_npu(opp: dict[str, str], tmp_path: Path) -> None:
    shown = run_suite("add_custom", opp["custom"], tmp_path)
    assert "::test_returns_what_the_reference_returns[add_custom-float16-npu]" in shown
    assert "::test_agrees_with_its_contract[add_custom-npu]" in shown


def test_plugin_of_a_stock_kernel_passes_on_an_npu(tmp_path: Path) -> None:
    source = copy_sources(ROOT / "tests" / "third_party" / "rms_norm", tmp_path / "source")
    site = tmp_path / "site"
    subprocess.run([*PIP, "--no-build-isolation", "--target", site, source], check=True)
    shown = run_suite("acme_rms_norm", "", tmp_path, str(site))
    assert "::test_agrees_with_its_contract[rms_norm-npu]" in shown
