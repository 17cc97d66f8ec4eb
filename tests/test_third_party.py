"""A plugin by somebody else: built, installed and used as outside of this repository."""

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


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the plugin outside of this repository."""
    return copy_sources(PLUGIN, tmp_path_factory.mktemp("elsewhere") / "scale_shift")


@pytest.fixture(scope="module")
def environment(source: Path, with_plugin: Callable[..., Scratch]) -> Scratch:
    """An environment with core and the plugin."""
    return with_plugin(source)


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


def test_its_own_tests_and_the_conformance_suite_pass(environment, source):
    options = ["-q", "-p", "no:cacheprovider", "-k", "not inductor"]
    environment.expect_passes("pytest", *options, "tests", cwd=source)


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
