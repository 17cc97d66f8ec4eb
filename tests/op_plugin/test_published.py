"""op-plugin's own tests, unmodified, with our ops in place of torch_npu's of the same names."""

from pathlib import Path

import pytest
from custom_pypto_simulator_build import build_kernels
from repository import ROOT
from simulated import Simulated

A2, A5 = "Ascend910B1", "Ascend950PR"
SERVED = {
    "npu_dynamic_quant": (A2, r"_(fp|bf)16_input"),
    "npu_grouped_matmul": (A2, r"_[0-57-9](_empty_x_w)?"),
    "npu_mhc_post_backward": (A5, r"_(bsnd|h_res_none).*"),
    "npu_mhc_pre": (A5, ".*"),
    "npu_mhc_pre_backward": (A5, ".*"),
    "npu_mhc_sinkhorn": (A5, ".*"),
    "npu_mhc_sinkhorn_backward": (A5, ".*"),
    "npu_quant_matmul": (A2, r"_(fp|bf)16(_nz)?"),
}
"""For each file, the NPU that it wants, and the tests whose calls our op serves."""

CODE = """
import importlib, re, sys, unittest
import torch, torch_npu, custom_pypto.core as core
for op in core.ops():
    if hasattr(torch_npu, op.name):
        setattr(torch_npu, op.name, getattr(torch.ops.custom_pypto, op.name))
module = importlib.import_module({file!r})
tests = [test for group in unittest.defaultTestLoader.loadTestsFromModule(module) for test in group]
suite = unittest.TestSuite(test for test in tests if re.fullmatch({names!r}, test._testMethodName))
result = unittest.TextTestRunner(sys.stdout).run(suite)
assert result.testsRun > 0 and result.wasSuccessful() and not result.skipped
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An opp package with CANN's kernels, simulated."""
    plugins = [ROOT / "plugins" / name for name in ("grouped_matmul", "mhc", "quant_matmul")]
    return str(build_kernels(plugins, tmp_path_factory.mktemp("opp"))["stock"])


@pytest.mark.parametrize("op", SERVED)
def test_op_plugin_s_tests_of_what_we_serve_pass(
    op: str, published: Path, kernels: str, machines: Simulated
) -> None:
    npu, names = SERVED[op]
    variables = {"ASCEND_CUSTOM_OPP_PATH": kernels, "CUSTOM_PYPTO_SIM_SOC": npu}
    code = CODE.format(file=f"test_{op}", names=f"test_{op}{names}")
    done = machines.server(variables).run(code, [published], variables)
    assert done.returncode == 0, done.stdout + done.stderr
