"""The conformance suite on a simulated NPU."""

import re
from pathlib import Path

import pytest
from programs import pip_install
from repository import THIRD_PARTY, write_project
from simulated import Simulated

SUITE = """
from custom_pypto import core
from custom_pypto_testing import Conformance

core.load_new()


class TestStock(Conformance):
    plugin = "acme_rms_norm"
"""
RUN = """
import os, pytest, sys

os.chdir({!r})
sys.exit(pytest.main({!r}))
"""
REGISTERED = 'plugin.def<Op>().impl<&rms_norm_cpu>("CPU").impl<&Op::launch>("PrivateUse1");'
WRONG = 'plugin.def<ops::wrong_graph>().impl<&ops::wrong_graph::launch>("PrivateUse1");'


def replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin of a stock kernel, as pip has installed it, with a wrong op beside its own."""
    folder = tmp_path_factory.mktemp("stock")
    source = write_project(THIRD_PARTY / "rms_norm", folder / "source", "rms_norm")
    contract = source / "ops.toml"
    right = contract.read_text(encoding="utf-8")
    replace_in(contract, "rms_norm", "wrong_graph")
    replace_in(contract, "epsilon=epsilon)", "epsilon=0.25)")
    contract.write_text(right + contract.read_text(encoding="utf-8"), encoding="utf-8")
    replace_in(source / "csrc" / "rms_norm.cpp", REGISTERED, f"{REGISTERED} {WRONG}")
    pip_install(source, folder / "site", CUSTOM_PYPTO_BUILD_CHECK="0")
    return folder / "site"


@pytest.fixture(scope="module")
def outcomes(
    site: Path, opp: dict[str, str], machines: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What became of each test of the suite; of the wrong op, only its graphs are tested."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    options = ["-rA", "-q", "-p", "no:cacheprovider", "--custom-pypto-device=npu"]
    command = [*options, "-k", "not wrong or works_on_streams", "--rootdir=.", "test_suite.py"]
    variables = {"ASCEND_CUSTOM_OPP_PATH": opp["custom"]}
    done = machines.server(variables).run(RUN.format(str(folder), command), [site], variables)
    lines = re.findall(r"^([A-Z]+) test_suite\.py::(\S+)", done.stdout, re.MULTILINE)
    assert lines, done.stdout + done.stderr
    assert " skipped" not in done.stdout
    return {test: outcome for outcome, test in lines}


def test_plugin_of_a_stock_kernel_passes_on_an_npu(outcomes: dict[str, str]) -> None:
    of_op = {each: outcomes[each] for each in outcomes if "[rms_norm-" in each}
    assert "TestStock::test_takes_any_strides[rms_norm-drawn-0-npu]" in of_op
    assert {*of_op.values()} == {"PASSED"}, of_op


def test_wrong_attribute_of_a_graph_line_is_found_on_an_npu(outcomes: dict[str, str]) -> None:
    of_op = {each: outcomes[each] for each in outcomes if "[wrong_graph-" in each}
    assert {*of_op.values()} == {"FAILED"}
    assert all("test_works_on_streams_and_in_graphs_of_an_npu[" in each for each in of_op)
