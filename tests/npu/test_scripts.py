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


# Every registration sets this attribute of the overload, whoever makes it.
COUNTED = """
import collections

import torch

def count(overload, name, value):
    if name == "_ge_converter":
        registered[overload.name()] += 1
    object.__setattr__(overload, name, value)

registered = collections.Counter()
torch._ops.OpOverload.__setattr__ = count
IMPORTS
torch.ops.custom_pypto.add_custom
ours = {name: times for name, times in registered.items() if name.startswith("custom_pypto::")}
assert ours == {f"custom_pypto::{op.name}": 1 for op in custom_pypto.core.ops()}, ours
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
