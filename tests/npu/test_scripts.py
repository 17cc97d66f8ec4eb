"""Whole scripts, and the orders in which their imports may be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fork_server import ForkServer
from ops import OPS

SCRIPTS = Path(__file__).parent / "scripts"


IN_NZ = {"CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS": "nz"}
RUNS: dict[str, tuple[Path, dict[str, str]]] = {
    **{path.stem: (path, {}) for path in SCRIPTS.glob("*.py")},
    "sparse_attention_nz": (SCRIPTS / "sparse_attention.py", IN_NZ),
}
"""Scripts, and the variables that they are run with."""


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_script_like_the_published_examples_runs(
    run_code: Callable[[str, str], str], kernels: str, name: str
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
    run_code: Callable[[str, str], str], opp: dict[str, str], tmp_path: Path
) -> None:
    libraries = tmp_path / "lib64"
    libraries.mkdir()
    stock = Path(opp["stock"]) / "op_api" / "lib" / "libcust_opapi.so"
    (libraries / "libopapi_transformer.so").symlink_to(stock)
    message = run_code("stock", PAGED_LOG_SUM_EXP.format(home=str(tmp_path)))
    assert "argument 'return_softmax_lse' must be False on an NPU with a paged cache" in message
    assert "install an opp package whose kernel has" in message


# It imports custom_pypto before torch, and has torch import torch_npu.
def test_a_script_runs_in_a_process_that_has_imported_nothing(opp: dict[str, str]) -> None:
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": opp["custom"], **IN_NZ}
    environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    simulator = str(Path(sys.executable).with_name("custom-pypto-sim"))
    script = str(SCRIPTS / "sparse_attention.py")
    done = subprocess.run(
        [simulator, "run", "--", sys.executable, "-W", "ignore", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "same result"


# The parts of torch that torchair imports take longer than torchair, and register none of our ops.
TORCH_ALONE = """
import custom_pypto_simulator, torch
import torch._inductor.lowering, torch._inductor.pattern_matcher, torch.distributed.tensor
"""


@pytest.fixture(scope="module")
def torch_alone(
    opp: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkServer]:
    """Forks processes that have torch imported, and neither torch_npu nor ops."""
    cache = "CUSTOM_PYPTO_SIM_CACHE"
    started = ForkServer(
        [],
        tmp_path_factory.mktemp("torch"),
        options=(),
        imports=TORCH_ALONE,
        variables={
            "ASCEND_CUSTOM_OPP_PATH": opp["custom"],
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            **({cache: os.environ[cache]} if cache in os.environ else {}),
        },
    )
    yield started
    started.close()


# Every registration sets this attribute of the overload, whoever makes it.
COUNTED = """
import collections, sys, warnings
warnings.filterwarnings("ignore")
import torch
assert not [name for name in sys.modules if name in ("torch_npu", "torchair", "custom_pypto")]
torch._import_device_backends()  # as `import torch` does where it is not switched off

def count(overload, name, value):
    if name == "_ge_converter":
        registered[overload.name()] += 1
    object.__setattr__(overload, name, value)

registered = collections.Counter()
torch._ops.OpOverload.__setattr__ = count
IMPORTS
torch.ops.custom_pypto.add_custom
ours = {name: times for name, times in registered.items() if name.startswith("custom_pypto::")}
assert ours == {f"custom_pypto::{name}": 1 for name in OPS}, ours
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import torch_npu, torchair, custom_pypto.core",
        "import torch_npu, custom_pypto.core, torchair",
        "import custom_pypto.core, torch_npu, torchair",
        "import custom_pypto.core, torch_npu; from torchair import ge",
        "import custom_pypto.core, torch_npu.dynamo.torchair; import torchair",
    ],
)
def test_every_op_has_a_converter_registered_once(torch_alone: ForkServer, imports: str) -> None:
    names = imports.replace("; from torchair import ge", "; import torchair.ge")
    imported = f"{names}; torchair.get_npu_backend; OPS = {OPS}"
    code = COUNTED.replace("IMPORTS", imported)
    done = torch_alone.run(code, [], {})
    assert done.returncode == 0, done.stdout + done.stderr
