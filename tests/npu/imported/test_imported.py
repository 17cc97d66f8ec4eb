"""What `custom-pypto import` writes is built, installed and launched, without a line by hand."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_cli import main
from custom_pypto_simulator_build import build_kernels
from programs import pip_install
from simulated import Simulated

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
# AddCustom, the operator of Ascend's samples.
SOURCES = HERE.parents[2] / "builder" / "tests" / "imported"

PROLOGUE = """
import warnings
warnings.filterwarnings("ignore")
import torch
import custom_pypto.core as core
assert {op.plugin for op in core.ops()} == {"operators"}
ops = torch.ops.custom_pypto
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).npu()
ones = torch.ones(2, 3).npu()
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp package of kernels.cpp, with the header of AddCustom that its build would write."""
    package = build_kernels([HERE], tmp_path_factory.mktemp("opp"))["imported"]
    header = package / "op_api" / "include" / "aclnn_add_custom.h"
    header.parent.mkdir()
    shutil.copyfile(SOURCES / "aclnn_add_custom.txt", header)
    return package


@pytest.fixture(scope="module")
def site(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin of all operators, as pip has installed it."""
    folder = tmp_path_factory.mktemp("imported")
    sources = {
        "--reg-op": SOURCES / "add_custom.txt",
        "--op-plugin": HERE / "functions.yaml",
        "--aclnn": package / "op_api" / "include" / "aclnn_add_custom.h",
    }
    options = [str(each) for option in sources.items() for each in option]
    plugin = folder / "operators"
    assert main(["import", *options, "--output", str(plugin)]) == 0
    assert not (plugin / "decisions.txt").exists()
    # The tests load it.
    pip_install(plugin, folder / "site", CUSTOM_PYPTO_BUILD_CHECK="0")
    shutil.rmtree(plugin)
    return folder / "site"


@pytest.fixture(scope="module")
def run(
    package: Path, site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Any]]:
    """Run code where the plugin is installed, with NPUs; return the JSON that it prints last."""
    machines = Simulated(tmp_path_factory.mktemp("machines"), ["torchair"])
    variables = {
        "ASCEND_CUSTOM_OPP_PATH": str(package),
        # The environment has the op add_custom of another plugin.
        "CUSTOM_PYPTO_PLUGINS": "operators",
    }

    def run(code: str) -> Any:
        done = machines.server(variables).run(PROLOGUE + code, [site], variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    yield run
    machines.close()


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_operator_of_the_samples_runs_in_a_graph(
    run: Callable[[str], Any], dynamic: bool
) -> None:
    code = f"""
import torchair
function = torch.compile(
    lambda x, y: ops.add_custom(x, y) - x,
    backend=torchair.get_npu_backend(compiler_config=torchair.CompilerConfig()),
    fullgraph=True,
    dynamic={dynamic},
)
print(function(x, ones).tolist())
"""
    assert run(code) == [[10, 10, 10], [10, 10, 10]]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("ops.add_custom(x, ones)", [[11, 12, 13], [14, 15, 16]]),
        ("ops.sweep(x, ones, turns=3, scale=0.5)", [[811, 812, 813], [814, 815, 816]]),
        ("ops.twist(x, 2)", [[21, 22, 23], [24, 25, 26]]),
        ("(ops.twist.out(x, 2, out=ones), ones)[1]", [[21, 22, 23], [24, 25, 26]]),
        ("(ops.twist_(x, 2), x)[1]", [[21, 22, 23], [24, 25, 26]]),
        (
            "ops.npu_fix_(x, [x.clone(), ones], kind='ab') or x",
            [[120912, 120914, 120916], [120918, 120920, 120922]],
        ),
    ],
)
def test_an_op_is_launched_in_the_order_of_its_kernel(
    run: Callable[[str], Any], call: str, result: list[list[int]]
) -> None:
    assert run(f"print({call}.tolist())") == result


@pytest.mark.parametrize(
    ("weight", "values"), [("ones[:, :2]", [[11, 12], [14, 15]]), ("None", [[1, 2], [4, 5]])]
)
def test_every_type_of_argument_arrives_in_the_order_of_exec(
    run: Callable[[str], Any], weight: str, values: list[list[int]]
) -> None:
    call = f"ops.npu_gather_rows(x, {weight}, k=2, flip=[True, False], by=[4, 5], mode='abc')"
    assert run(f"print([each.tolist() for each in {call}])") == [values, [31540, 31541]]
