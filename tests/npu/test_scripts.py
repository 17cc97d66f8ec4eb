"""Whole scripts, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
SIMULATED = (
    str(Path(sys.executable).with_name("custom-pypto-sim")),
    *("run", "--", sys.executable),
)


def run(opp: str, *arguments: str) -> str:
    """What Python prints with these arguments, under the simulator."""
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": opp}
    environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    done = subprocess.run(
        [*SIMULATED, "-W", "ignore", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.py")))
def test_a_script_like_the_published_examples_runs(
    opp: dict[str, str], kernels: str, script: str
) -> None:
    assert run(opp[kernels], str(SCRIPTS / script)).splitlines()[-1] == "same result"


COUNTED = """
import logging

import torch

class Count(logging.Handler):
    def emit(self, record):
        if "converters registered" in record.getMessage():
            registered.append(record.args[0])

registered = []
logging.getLogger("custom_pypto").addHandler(Count())
logging.getLogger("custom_pypto").setLevel(logging.DEBUG)
IMPORTS
torch.ops.custom_pypto.add_custom
from torchair._ge_concrete_graph.fx2ge_converter import _get_converter
for record in custom_pypto.core.ops():
    assert _get_converter(getattr(torch.ops.custom_pypto, record.name).default), record.name
assert sorted(registered) == ["add_custom", "lightning_indexer", "sparse_attention"], registered
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
def test_every_op_has_a_converter_registered_once(opp: dict[str, str], imports: str) -> None:
    names = imports.replace("; from torchair import ge", "; import torchair.ge")
    run(opp["custom"], "-c", COUNTED.replace("IMPORTS", names + "; torchair.get_npu_backend"))
