"""A plugin whose kernels are Python functions: no compiler, one wheel for every platform."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import scratch
from repository import ROOT

PLUGIN = ROOT / "tests" / "third_party" / "gated_silu"

USE = """\
import torch
from acme_gated_silu import gated_silu
x = torch.ones(2, 3)
for arguments in ((None, x), (x, torch.ones(2, 4)), (x, x.int())):
    try:
        gated_silu(*arguments)
    except RuntimeError as error:
        print(error)
compiled = torch.compile(lambda x: gated_silu(x, x), fullgraph=True, dynamic=True)
print(torch.equal(compiled(x), gated_silu(x, x)))
"""
USED = """\
gated_silu: argument 'x' must be a tensor, got None
gated_silu: argument 'gate' must have size 3 in dimension -1 (the hidden size of x), got 4 in [2, 4]
gated_silu: argument 'gate' must have the dtype of 'x' (float32), got int32
True
"""


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, lent: Path, wheel: Callable[[str], Path]
) -> scratch.Scratch:
    """Give an environment with core and the plugin, built where no compiler is found."""
    root = tmp_path_factory.mktemp("python_plugin")
    source = root / "gated_silu"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    made = scratch.create(root / "venv", lent)
    made.install(wheel("custom_pypto_build"), wheel("custom_pypto_core"))
    without = {"CXX": "no-compiler", "CC": "no-compiler"}
    built = made.build_wheel(source, root / "wheels", environment=without)
    assert built.name == "acme_gated_silu-1.0.0-py3-none-any.whl"
    made.install(built)
    return made


def test_its_kernels_are_checked_and_compiled_as_those_of_a_library(environment):
    assert environment.run("-c", USE).stdout == USED


def test_the_command_line_shows_it_as_any_other(environment):
    (plugin,) = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    assert (plugin["status"], plugin["library"]) == ("loaded", "")
    assert environment.custom_pypto("doctor").returncode == 0


def test_passes_the_conformance_suite(environment):
    done = environment.run(
        "-m", "custom_pypto_testing", "gated_silu", "-k", "not inductor", check=False
    )
    summary = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ passed, \d+ deselected in .*", summary), done.stdout
