"""Plugins by somebody else: built, installed and used as outside of this repository.

acme_lists takes, writes and returns lists of tensors. The kernels of gated_silu are Python
functions: it needs no compiler, and its wheel fits every platform.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import ROOT, copy_sources
from scratch import Scratch

PLUGIN = ROOT / "tests" / "third_party" / "scale_shift"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# The names of custom_pypto that a file of the plugin uses, by its suffix.
USES = {
    ".py": (r"^from custom_pypto\S* import (.*)$", r"^def (custom_pypto_\w+)"),
    ".cpp": (r"#include <(custom_pypto/.*)>", r"custom_pypto::(\w+)", r"(CUSTOM_PYPTO_\w+)"),
}


LISTS = """\
import torch
from acme_lists import add_products_, scale_each

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except RuntimeError as error:
        print(error)

xs = [torch.ones(2), torch.full((1, 2), 4.0)]
ys, sums = scale_each(xs, scale=2)
print([y.tolist() for y in ys], sums.tolist())
refused(scale_each, [])
refused(scale_each, xs, [xs[0], xs[0]])
refused(scale_each, xs, scale=-float("nan"))
one = torch.zeros(2, 2)
refused(add_products_, [one, one[:1]], [one, one[:1]], torch.ones(2, 2))
refused(add_products_, [one, one.clone()], [one.clone(), one[:, :1].clone()], torch.ones(2, 2))
compiled = torch.compile(lambda xs: scale_each(xs)[0], fullgraph=True, dynamic=True)
print([y.tolist() for y in compiled(xs)])
help(torch.ops.custom_pypto.add_products_)
"""
LISTS_PRINTS = """\
[[2.0, 2.0], [[6.0, 6.0]]] [4.0, 12.0]
scale_each: argument 'xs' must have at least 1 tensor, got 0
scale_each: argument 'offsets[1]' must have the shape of 'xs[1]' [1, 2], got [2]
scale_each: argument 'scale' must be more than -inf and less than inf, got nan
add_products_: argument 'totals[1]' is written in place, but overlaps argument 'totals[0]', which \
is written too; pass a tensor of its own, such as a clone() made outside of compiled code: \
Inductor drops clones
add_products_: argument 'rows[1]' must have size 2 in dimension 1 (K), got 1 in [2, 1]
[[1.0, 1.0], [[4.0, 4.0]]]
"""

SILU = """\
import torch
from acme_gated_silu import gated_silu
x = torch.ones(2, 3)
for arguments in ((None, x), (x, torch.ones(2, 4)), (x, x.int())):
    try:
        gated_silu(*arguments)
    except RuntimeError as error:
        print(error)
compiled = torch.compile(lambda x: gated_silu(x, x), fullgraph=True, dynamic=True)
print(torch.equal(compiled(x), gated_silu(x, x)))
"""
SILU_PRINTS = """\
gated_silu: argument 'x' must be a tensor, got None
gated_silu: argument 'gate' must have size 3 in dimension -1 (the hidden size of x), got 4 in [2, 4]
gated_silu: argument 'gate' must have the dtype of 'x' (float32), got int32
True
"""

# As many as find a fault of a plugin; those of this repository are fuzzed with more.
FEW_CALLS = "--custom-pypto-fuzz=400"
SUITES = """\
import custom_pypto_testing


class TestLists(custom_pypto_testing.Conformance):
    plugin = "acme_lists"


class TestGatedSilu(custom_pypto_testing.Conformance):
    plugin = "gated_silu"
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the plugins outside of this repository."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("scale_shift", "lists", "gated_silu"):
        copy_sources(PLUGIN.with_name(name), folder / name)
    return folder


@pytest.fixture(scope="module")
def environment(sources: Path, new_environment: Callable[..., Scratch]) -> Scratch:
    """An environment with core and the plugins."""
    made = new_environment(*(f"custom_pypto_{name}" for name in ("build", "blocks", "testing")))
    for name in ("scale_shift", "lists"):
        made.install(made.build_wheel(sources / name, sources))
    built = made.build_wheel(sources / "gated_silu", sources, {"CXX": "no-compiler"})
    assert built.name == "acme_gated_silu-1.0.0-py3-none-any.whl"
    made.install(built)
    return made


def test_the_command_in_its_readme_works(environment):
    command = re.search(r'python -c "\n(.*?)\n"', (PLUGIN / "README.md").read_text(), re.DOTALL)
    assert command is not None
    assert environment.run("-W", "error", "-c", command[1]).stdout == "tensor([1., 3., 5.])\n"


def test_the_command_line_shows_it(environment):
    shown = json.loads(environment.custom_pypto("info", "scale_shift", "--json").stdout)
    (plugin,) = shown["plugins"]
    assert plugin["distribution"] == "acme-scale-shift"
    assert plugin["version"] == "2.3.0"
    assert plugin["summary"].startswith("scale_shift(x, scale, shift)")
    (op,) = plugin["ops"]
    assert op["schema"] == "scale_shift(Tensor self, float scale, float shift) -> Tensor"
    assert {"CPU", "Meta", "Autograd"} <= set(op["dispatch_keys"])


def test_its_own_tests_and_the_conformance_suites_pass(environment, sources):
    suites = sources / "test_suites.py"
    suites.write_text(SUITES, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-k", "not inductor", FEW_CALLS]
    environment.expect_passes("pytest", *options, "scale_shift/tests", suites, cwd=sources)


def test_an_error_names_the_tensor_in_the_list(environment):
    printed = environment.run("-c", LISTS).stdout
    assert printed.startswith(LISTS_PRINTS)
    assert "totals   E tensors; [M[i], N], dtype of columns; written in place" in printed


def test_python_kernels_are_checked_and_compiled_as_those_of_a_library(environment):
    assert environment.run("-c", SILU).stdout == SILU_PRINTS


def test_the_command_line_shows_a_plugin_without_a_library_as_any_other(environment):
    plugins = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    found = {each["name"]: (each["status"], each["library"]) for each in plugins}
    assert found["gated_silu"] == ("loaded", "")
    assert environment.custom_pypto("doctor").returncode == 0


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
