"""The three files that docs/contract.md begins with are a whole plugin."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from repository import ROOT
from scratch import Scratch

PAGE = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

USE = """\
import custom_pypto, torch
square = torch.ops.custom_pypto.square
x = torch.tensor([1.0, -2.0, 3.0])
print(square(x).tolist())
compiled = torch.compile(lambda x: square(x) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
print(compiled(x).tolist())
class Model(torch.nn.Module):
    def forward(self, x):
        return square(x)
size = torch.export.Dim("size")
program = torch.export.export(Model(), (x,), dynamic_shapes={"x": {0: size}})
print(program.module()(torch.arange(5.0)).tolist())
try:
    square(x.half())
except RuntimeError as error:
    print(error)
"""
USED = """\
[1.0, 4.0, 9.0]
[2.0, 5.0, 10.0]
[0.0, 1.0, 4.0, 9.0, 16.0]
square: argument 'self' must be float32 or float64, got float16
"""

FUNCTION = """\
import sys, acme_square
loaded = {"torch", "custom_pypto"} & set(sys.modules)
import torch
double = torch.compile(lambda x: acme_square.square(x) * 2, fullgraph=True, backend="aot_eager")
print(loaded, double(torch.tensor([3.0])).tolist(), acme_square.square(torch.tensor([3.0])).item())
print(acme_square.square.__doc__.split("\\n")[2].strip())
"""

TYPES = """\
import acme_square
from torch import Tensor
def right(x: Tensor) -> Tensor:
    return acme_square.square(x)
def wrong(x: Tensor) -> int:
    acme_square.square(3)
    return acme_square.square(self=x)
"""
MISTAKES = [
    'user.py:6: error: Argument 1 to "square" has incompatible type "int"; expected "Tensor"',
    'user.py:7: error: Incompatible return value type (got "Tensor", expected "int")',
]


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, with_plugin: Callable[..., Scratch]
) -> Scratch:
    """An environment with core and the plugin, built from the page's files."""
    project = tmp_path_factory.mktemp("square")
    for name, text in FILE.findall(PAGE):
        (project / name).write_text(text, encoding="utf-8")
    assert {path.name for path in project.iterdir()} == {"pyproject.toml", "ops.toml", "square.cpp"}
    return with_plugin(project)


def test_works_eagerly_compiled_and_exported(environment):
    assert environment.run("-c", USE).stdout == USED


def test_its_op_is_a_function_of_the_package_imported_alone(environment):
    done = environment.run("-W", "error::UserWarning", "-c", FUNCTION)
    assert done.stdout == "set() [18.0] 9.0\nevery element times itself\n"


def test_the_function_of_a_plugin_that_is_not_loaded_says_why(environment):
    done = environment.run(
        "-c",
        "import acme_square; acme_square.square(None)",
        check=False,
        environment={"CUSTOM_PYPTO_DISABLE": "square"},
    )
    assert "which is blocked: CUSTOM_PYPTO_DISABLE names it" in done.stderr.splitlines()[-1]


def test_a_type_checker_knows_the_function(environment, tmp_path):
    # mypy would take half a minute for torch itself.
    (tmp_path / "torch.pyi").write_text("class Tensor: ...\nclass dtype: ...\nclass device: ...\n")
    (tmp_path / "user.py").write_text(TYPES)
    # mypy runs outside of the environment, and imports from there.
    command = ["-m", "mypy", "--strict", "--python-executable", environment.python, "user.py"]
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
    errors = [line.rpartition("  [")[0] for line in done.stdout.splitlines()[:-1]]
    assert errors == MISTAKES, done.stdout + done.stderr


def test_passes_the_conformance_suite(environment):
    environment.expect_passes(
        "custom_pypto_testing", "square", "-k", "not inductor", "--custom-pypto-fuzz=400"
    )
