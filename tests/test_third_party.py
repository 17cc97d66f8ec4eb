"""A plugin by somebody else: built, installed and used as outside of this repository."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import scratch
from repository import ROOT

PLUGIN = ROOT / "tests" / "third_party" / "scale_shift"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# What of custom_pypto a file of the plugin uses, by its suffix.
USES = {
    ".py": (r"^from custom_pypto\S* import (.*)$", r"^def (custom_pypto_\w+)"),
    ".cpp": (r"#include <(custom_pypto/.*)>", r"custom_pypto::(\w+)", r"(CUSTOM_PYPTO_\w+)"),
}

COMPILE = """\
import custom_pypto, torch
torch.manual_seed(0)
op = torch.ops.custom_pypto.scale_shift
compiled = torch.compile(lambda x: op(x, 2.0, 1.0), fullgraph=True, dynamic=True)
for size in (3, 4, 5):
    x = torch.randn(size, 2 * size)
    torch.testing.assert_close(compiled(x), x * 2 + 1)
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
"""

EXPORT = """\
import custom_pypto, torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.custom_pypto.scale_shift(x, 2.0, 1.0)
rows = torch.export.Dim("rows")
program = torch.export.export(Model(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: rows}})
x = torch.arange(14.0).reshape(7, 2)
torch.testing.assert_close(program.module()(x), x * 2 + 1)
"""

TORCHAIR = """\
registered = {}
def register_fx_node_ge_converter(op):
    return lambda converter: registered.setdefault(str(op), converter)
"""

CONVERT = """\
import custom_pypto
import torchair
print(torchair.registered["custom_pypto.scale_shift.default"]("x", 2.0, 1.0))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the plugin that has nothing of this repository around it."""
    folder = tmp_path_factory.mktemp("elsewhere") / "scale_shift"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    return folder


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory,
    lent: Path,
    wheel: Callable[[str], Path],
    source: Path,
) -> scratch.Scratch:
    """Give an environment with core's wheel and the plugin, built and installed there."""
    root = tmp_path_factory.mktemp("third_party")
    made = scratch.create(root / "venv", lent)
    made.install(wheel("custom_pypto_build"), wheel("custom_pypto_core"))
    made.install(made.build_wheel(source, root / "wheels"))
    return made


def test_the_command_in_its_readme_works(environment):
    command = re.search(r'python -c "\n(.*?)\n"', (PLUGIN / "README.md").read_text(), re.DOTALL)
    assert command is not None
    assert environment.run("-W", "error", "-c", command[1]).stdout == "tensor([1., 3., 5.])\n"


def test_compiles_once_for_all_sizes(environment):
    environment.run("-c", COMPILE)


def test_exports_with_a_dynamic_size(environment):
    environment.run("-c", EXPORT)


def test_its_converter_waits_for_torchair(environment, tmp_path):
    package = tmp_path / "torchair"
    package.mkdir()
    (package / "__init__.py").write_text(TORCHAIR)
    (package / "ge.py").write_text(
        "class attr:\n    Int, Float, Bool, Str = int, float, bool, str\n"
        "def custom_op(kind, *, inputs, outputs, attrs):\n    return kind, inputs, outputs, attrs\n"
    )
    done = environment.run("-c", CONVERT, environment={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == "('AcmeScaleShift', {'x': 'x'}, ['y'], {'scale': 2.0, 'shift': 1.0})\n"


def test_the_command_line_shows_it(environment):
    shown = json.loads(environment.custom_pypto("info", "scale_shift", "--json").stdout)
    (plugin,) = shown["plugins"]
    assert plugin["distribution"] == "acme-scale-shift"
    assert plugin["version"] == "2.3.0"
    assert plugin["summary"].startswith("scale_shift(x, scale, shift)")
    (op,) = plugin["ops"]
    assert op["schema"] == "scale_shift(Tensor self, float scale, float shift) -> Tensor"
    assert {"CPU", "Meta", "Autograd"} <= set(op["dispatch_keys"])


def test_its_own_tests_and_the_conformance_suite_pass(environment, source):
    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=source)
    summary = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ passed in .*", summary), summary


def test_the_page_about_the_headers_shows_its_source():
    source = (PLUGIN / "csrc" / "scale_shift.cpp").read_text(encoding="utf-8")
    assert f"```cpp\n{source}```\n" in (ROOT / "docs" / "headers.md").read_text(encoding="utf-8")


def test_it_uses_documented_names_only():
    documented = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    used: set[str] = set()
    for file in sorted(PLUGIN.rglob("*.*")):
        for pattern in USES.get(file.suffix, ()):
            for names in re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE):
                used |= set(names.split(", "))
    assert {
        "hookimpl",
        "custom_pypto_autograd",
        "custom_pypto/elementwise.h",
        "visit_dtype",
    } <= used
    assert [name for name in sorted(used) if name not in documented] == []
