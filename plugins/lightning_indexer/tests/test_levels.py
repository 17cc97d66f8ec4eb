"""Every instruction set level runs the tests of the kernels, or says that the machine lacks it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import custom_pypto.core
import pytest

LEVELS = ["portable", "avx2", "avx512", "avx512_bf16", "neon", "neon_bf16"]
KERNEL_TESTS = ["test_scores.py", "test_selection.py"]
CALL = """
import torch, custom_pypto.core
x = torch.ones(1, 1, 1, 1)
print(torch.ops.custom_pypto.npu_lightning_indexer_pto(x, x, x[0], layout_key="BSND").sum())
"""


def level_in_use() -> str | None:
    """The level that this process uses; None if CUSTOM_PYPTO_CPU_ISA asks for none it has."""
    try:
        return custom_pypto.core.cpu_isa("lightning_indexer")
    except custom_pypto.core.PluginError:
        return None


def run(level: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "CUSTOM_PYPTO_CPU_ISA": level},
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def available_levels() -> list[str]:
    error = run("none", "-c", CALL).stderr
    return error.split("this machine has: ")[1].split(". Set")[0].split(", ")


def test_uses_the_level_that_was_asked_for() -> None:
    asked = os.environ.get("CUSTOM_PYPTO_CPU_ISA")
    assert level_in_use() == (asked or available_levels()[-1])


@pytest.mark.parametrize("level", LEVELS)
def test_level_gives_right_results_or_is_refused(level: str) -> None:
    available = available_levels()
    if level not in available:
        refused = run(level, "-c", CALL)
        assert refused.returncode == 1
        assert f"CUSTOM_PYPTO_CPU_ISA='{level}'" in refused.stderr
        assert "that this machine lacks; this machine has: portable" in refused.stderr
        return
    # The level of this process runs these tests in this process.
    names = [] if level == level_in_use() else KERNEL_TESTS
    tests = [str(Path(__file__).with_name(name)) for name in names]
    this = f"{__file__}::{test_uses_the_level_that_was_asked_for.__name__}"
    done = run(level, "-m", "pytest", "-q", "-p", "no:cacheprovider", this, *tests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_word_that_is_no_level_is_refused() -> None:
    refused = run("fastest", "-c", CALL)
    assert refused.returncode == 1
    assert "CUSTOM_PYPTO_CPU_ISA='fastest' is no instruction set level" in refused.stderr


def test_portable_is_always_available() -> None:
    assert available_levels()[0] == "portable"
