"""Plugins by somebody else: built, installed and used as outside of this repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import ROOT, copy_sources, write_project
from scratch import FEW_CALLS, Scratch

pytestmark = pytest.mark.slow
PLUGIN = ROOT / "tests" / "third_party" / "scale_shift"

LISTS = """\
import torch
from acme_lists import add_products_

one = torch.zeros(2, 2)
try:
    add_products_([one, one[:1]], [one, one[:1]], torch.ones(2, 2))
except RuntimeError as error:
    print(error)
help(torch.ops.custom_pypto.add_products_)
import acme_square
try:
    acme_square.square(None)
except Exception as error:
    print(error)
"""
LISTS_PRINTS = """\
add_products_: argument 'totals[1]' is written in place, but overlaps argument 'totals[0]', which \
is written too; pass a tensor of its own, such as a clone() made outside of compiled code: \
Inductor drops clones
"""

SMALLEST = (ROOT / "docs" / "smallest.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FUNCTION = """\
import sys, acme_square
loaded = {"torch", "custom_pypto"} & set(sys.modules)
import torch
double = torch.compile(lambda x: acme_square.square(x) * 2, fullgraph=True, backend="aot_eager")
print(loaded, double(torch.tensor([3.0])).tolist(), acme_square.square(torch.tensor([3.0])).item())
print(acme_square.square.__doc__.split("\\n")[2].strip())
"""

SUITE = """

class Test_{0}(custom_pypto_testing.Conformance):
    plugin = "{0}"
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the plugins outside of this repository."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("scale_shift", "gated_silu"):
        copy_sources(PLUGIN.with_name(name), folder / name)
    write_project(PLUGIN.with_name("lists"), folder / "lists", "lists")
    (folder / "square").mkdir()
    files = dict(FILE.findall(SMALLEST))
    assert files.keys() == {"pyproject.toml", "ops.toml", "square.cpp"}
    for name, text in files.items():
        (folder / "square" / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def environment(sources: Path, new_environment: Callable[..., Scratch]) -> Scratch:
    """An environment with core and the plugins."""
    made = new_environment(*(f"custom_pypto_{name}" for name in ("build", "blocks", "testing")))
    # The tests load them again.
    unchecked = {"CUSTOM_PYPTO_BUILD_CHECK": "0"}
    compiled = ("scale_shift", "lists", "square")
    wheels = [made.build_wheel(sources / name, sources, unchecked) for name in compiled]
    no_compiler = {"CXX": "no-compiler", **unchecked}
    wheels.append(made.build_wheel(sources / "gated_silu", sources, no_compiler))
    assert wheels[-1].name == "acme_gated_silu-1.0.0-py3-none-any.whl"
    made.install(*wheels)
    return made


def test_the_command_in_its_readme_works(environment):
    command = re.search(r'python -c "\n(.*?)\n"', (PLUGIN / "README.md").read_text(), re.DOTALL)
    assert command is not None
    assert environment.run("-W", "error", "-c", command[1]).stdout == "tensor([1., 3., 5.])\n"


def test_all_suites_pass_also_without_a_test_file_and_print_what_was_fuzzed(environment, sources):
    suites = sources / "test_suites.py"
    classes = map(SUITE.format, ("acme_lists", "gated_silu"))
    suites.write_text("".join(["import custom_pypto_testing\n", *classes]), encoding="utf-8")
    options = ["--import-mode=importlib", *FEW_CALLS, "scale_shift/tests", suites]
    printed = environment.expect_passes("custom_pypto_testing", "square", *options, cwd=sources)
    rows = [line.split() for line in printed.partition("fuzzed calls")[2].splitlines()]
    assert rows[1][:4] == ["op", "calls", "accepted", "refused"]
    assert ["square", "100"] in [row[:2] for row in rows]


def test_errors_name_the_tensor_in_the_list_and_why_a_plugin_is_not_loaded(environment):
    printed = environment.run("-c", LISTS, environment={"CUSTOM_PYPTO_DISABLE": "square"}).stdout
    assert printed.startswith(LISTS_PRINTS)
    assert "totals   E tensors; [M[i], N], dtype of columns; written in place" in printed
    assert "which is blocked: CUSTOM_PYPTO_DISABLE names it" in printed.splitlines()[-1]


def test_an_op_is_a_function_of_the_package_imported_alone(environment):
    done = environment.run("-W", "error::UserWarning", "-c", FUNCTION)
    assert done.stdout == "set() [18.0] 9.0\nevery element times itself\n"
