"""Whole scripts."""

import sys
from pathlib import Path

import pytest
from programs import run_program
from worker import RunCode

SCRIPTS = Path(__file__).parent / "scripts"

IN_NZ = {"CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS": "nz"}
RUNS: dict[str, tuple[Path, dict[str, str]]] = {
    **{path.stem: (path, {}) for path in SCRIPTS.glob("*.py")},
    "sparse_attention_nz": (SCRIPTS / "sparse_attention.py", IN_NZ),
}
"""Scripts, and the variables that they are run with."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_script_like_the_published_examples_runs(
    run_code: RunCode, kernels: str, name: str
) -> None:
    script, variables = RUNS[name]
    code = f"import os, runpy; os.environ.update({variables})\n"
    code += f"runpy.run_path({str(script)!r}, run_name='__main__')"
    assert run_code(kernels, code).splitlines()[-1] == "same result"


PAGED_LOG_SUM_EXP = """
import os, sys, torch, custom_pypto.core
from custom_pypto_sparse_attention import samples

os.environ.update(ASCEND_HOME_PATH={home!r}, ASCEND_CUSTOM_OPP_PATH="")
given = samples.attention_arguments(samples.DEEPSEEK, "npu", layout="TND")
op = torch.ops.custom_pypto.npu_sparse_flash_attention
assert op(**given)[0].shape == given["query"].shape
try:
    op(**given, return_softmax_lse=True)
except RuntimeError as error:
    print(error)
"""


def test_cann_s_own_kernel_has_no_log_sum_exp_of_paged_keys(
    run_code: RunCode, opp: dict[str, str], tmp_path: Path
) -> None:
    libraries = tmp_path / "lib64"
    libraries.mkdir()
    stock = Path(opp["stock"]) / "op_api" / "lib" / "libcust_opapi.so"
    (libraries / "libopapi_transformer.so").symlink_to(stock)
    message = run_code("stock", PAGED_LOG_SUM_EXP.format(home=str(tmp_path)))
    assert "argument 'return_softmax_lse' must be False on an NPU with a paged cache" in message
    assert "install an opp package whose kernel has" in message


# It imports custom_pypto before torch, and has torch import torch_npu; torchair comes last.
# core/tests/test_graph.py has the other orders.
def test_a_script_runs_in_a_process_that_has_imported_nothing(opp: dict[str, str]) -> None:
    simulator = Path(sys.executable).with_name("custom-pypto-sim")
    script = (sys.executable, "-W", "ignore", SCRIPTS / "sparse_attention.py")
    variables = {"ASCEND_CUSTOM_OPP_PATH": opp["custom"], "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    done = run_program(simulator, "run", "--", *script, env=variables | IN_NZ)
    assert done.stdout.splitlines()[-1] == "same result"
