"""Ops come and go as their wheels are installed and uninstalled."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import ROOT
from scratch import Scratch


def ops(environment: Scratch) -> set[str]:
    """The ops of the loaded plugins, as the command line lists them."""
    plugins = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    assert {plugin["status"] for plugin in plugins} <= {"loaded"}
    return {op["name"] for plugin in plugins for op in plugin["ops"]}


def test_ops_come_and_go_with_their_wheels(environment: Scratch, wheel: Callable[[str], Path]):
    environment.install(wheel("custom_pypto_lightning_indexer"))
    before = set(environment.site_packages.rglob("*"))
    environment.install(wheel("custom_pypto_add_custom"))
    both, added = ops(environment), {"add_custom", "add_custom_backward"}
    assert {"npu_lightning_indexer_pto", *added} <= both

    environment.uninstall("custom-pypto-add-custom")
    assert ops(environment) == both - added
    # Python compiled other packages meanwhile.
    left = map(str, set(environment.site_packages.rglob("*")) - before)
    assert [each for each in left if "add_custom" in each or "__pycache__" not in each] == []


@pytest.fixture(scope="module")
def with_add(new_environment: Callable[..., Scratch]) -> Scratch:
    return new_environment("custom_pypto_add_custom")


def test_the_doctor_finds_a_good_installation_healthy(with_add: Scratch):
    report = json.loads(with_add.custom_pypto("doctor", "--json").stdout)
    assert report["healthy"] is True
    values = {check["name"]: check["value"] for check in report["sections"]["plugins"]}
    assert values["add_custom"].endswith("ms: add_custom, add_custom_backward")


def test_an_isa_that_kernels_lack_is_a_problem(with_add: Scratch):
    variables = {"CUSTOM_PYPTO_CPU_ISA": "nonsense"}
    done = with_add.custom_pypto("doctor", environment=variables, check=False)
    reason = "cannot be called on a CPU: CUSTOM_PYPTO_CPU_ISA='nonsense' names an instruction set"
    assert f"add_custom {reason}" in done.stdout
    assert done.stdout.endswith("1 problem found: see the lines with 'problem:'.\n")


def test_sources_in_the_current_folder_do_not_disturb(with_add: Scratch):
    add = "import torch as t; print(t.ops.custom_pypto.add_custom(t.ones(3), t.ones(3)).tolist())"
    done = with_add.run("-W", "error", "-c", f"import custom_pypto; {add}", cwd=ROOT)
    assert done.stdout == "[2.0, 2.0, 2.0]\n"
