"""The three files that docs/contract.md begins with are a whole plugin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import scratch
from repository import ROOT

PAGE = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
FILE = re.compile(
    r"^(?:Three files\. )?`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)

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


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, lent: Path, wheel: Callable[[str], Path]
) -> scratch.Scratch:
    """Give an environment with core and the plugin, built from the page's files."""
    root = tmp_path_factory.mktemp("smallest")
    project = root / "square"
    project.mkdir()
    for name, text in FILE.findall(PAGE):
        (project / name).write_text(text, encoding="utf-8")
    assert {path.name for path in project.iterdir()} == {"pyproject.toml", "ops.toml", "square.cpp"}
    made = scratch.create(root / "venv", lent)
    made.install(wheel("custom_pypto_build"), wheel("custom_pypto_core"))
    made.install(made.build_wheel(project, root / "wheels"))
    return made


def test_works_eagerly_compiled_and_exported(environment):
    assert environment.run("-c", USE).stdout == USED


def test_passes_the_conformance_suite(environment):
    done = environment.run("-m", "custom_pypto_testing", "square", "-k", "not inductor")
    summary = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ passed, \d+ deselected in .*", summary), summary
