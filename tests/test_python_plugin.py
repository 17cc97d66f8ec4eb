"""A plugin whose kernels are Python functions: no compiler, one wheel for every platform."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from repository import ROOT, copy_sources
from scratch import Scratch

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
    tmp_path_factory: pytest.TempPathFactory, with_plugin: Callable[..., Scratch]
) -> Scratch:
    """An environment with core and the plugin, built without a compiler."""
    source = copy_sources(PLUGIN, tmp_path_factory.mktemp("python_plugin") / "gated_silu")
    return with_plugin(source, {"CXX": "no-compiler"})


def test_its_wheel_fits_every_platform(environment):
    [built] = environment.root.with_name("wheels").iterdir()
    assert built.name == "acme_gated_silu-1.0.0-py3-none-any.whl"


def test_its_kernels_are_checked_and_compiled_as_those_of_a_library(environment):
    assert environment.run("-c", USE).stdout == USED


def test_the_command_line_shows_it_as_any_other(environment):
    (plugin,) = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    assert (plugin["status"], plugin["library"]) == ("loaded", "")
    assert environment.custom_pypto("doctor").returncode == 0


def test_passes_the_conformance_suite(environment):
    environment.expect_passes("custom_pypto_testing", "gated_silu", "-k", "not inductor")
