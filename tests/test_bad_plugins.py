"""Plugins that are broken, each in its own way, all installed at once beside two good ones.

A folder of bad_plugins/ is a whole plugin; its name says what is wrong. Its pyproject.toml has a
table ``[tool.bad-plugin]``: `status` is what becomes of it, `reason` what custom_pypto must say of
it (``{package}`` stands for the folder it is installed in, ``{rest}`` for any text, other words in
braces for one word that differs between machines), `environment` is set while it is built. Where
the build hook rightly refuses to build such a plugin, ``spoil.py`` breaks it after it was
installed.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import scratch
from repository import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BAD_PLUGINS = ROOT / "tests" / "bad_plugins"
GOOD_PLUGIN = ROOT / "tests" / "third_party" / "scale_shift"

REPORT = """\
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto.core as core
import torch

def touched(op):
    try:
        return str(getattr(torch.ops.custom_pypto, op))
    except AttributeError as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps({
    "warnings": [[warning.category.__name__, str(warning.message)] for warning in caught],
    "plugins": {
        plugin.distribution: {"status": str(plugin.status), "reason": plugin.reason}
        for plugin in core.plugins()
    },
    "touched": {op: touched(op) for op in OPS},
    "add_custom": torch.ops.custom_pypto.add_custom(torch.ones(2), torch.ones(2)).tolist(),
    "scale_shift": torch.ops.custom_pypto.scale_shift(torch.ones(2), 3.0, 1.0).tolist(),
}))
"""


@dataclass(frozen=True)
class BadPlugin:
    """One folder of bad_plugins/."""

    folder: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """The distribution's name, which is the folder's."""
        return self.folder.name

    @property
    def package(self) -> str:
        """The package, which is also the op's name."""
        return self.name.replace("-", "_")

    def reason(self, environment: scratch.Scratch) -> re.Pattern[str]:
        """What custom_pypto must say of it in `environment`."""
        known = {"package": re.escape(str(environment.site_packages / self.package)), "rest": ".*"}
        parts = re.split(r"\{(\w+)\}", self.expected["reason"])
        # Every other part is the word of a pair of braces.
        patterns = [
            known.get(part, r"\S+") if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        ]
        return re.compile("".join(patterns), re.DOTALL)

    def spoil(self, environment: scratch.Scratch) -> None:
        """Break what is installed in `environment`, if it has to be."""
        if (self.folder / "spoil.py").exists():
            spoil = runpy.run_path(str(self.folder / "spoil.py"))["spoil"]
            spoil(environment.site_packages / self.package)


def _read(folder: Path) -> BadPlugin:
    document = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return BadPlugin(folder, document["tool"]["bad-plugin"])


BAD = [_read(path.parent) for path in sorted(BAD_PLUGINS.glob("*/pyproject.toml"))]
each_bad_plugin = pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, lent: Path, wheel: Callable[[str], Path]
) -> scratch.Scratch:
    """Give an environment with core, two good plugins and every bad one."""
    root = tmp_path_factory.mktemp("bad")
    made = scratch.create(root / "venv", lent)
    made.install(wheel("custom_pypto_core"))

    def build(source: Path, variables: dict[str, str]) -> Path:
        copy = root / "sources" / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        # They need not be fast, and so many take a while to compile.
        variables = {"CXXFLAGS": "-O0", **variables}
        return made.build_wheel(copy, root / "wheels" / source.name, variables)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = [GOOD_PLUGIN, *(bad.folder for bad in BAD)]
        variables = [{}, *(bad.expected.get("environment", {}) for bad in BAD)]
        wheels = list(pool.map(build, sources, variables))
    made.install(wheel("custom_pypto_add_custom"), *wheels)
    for bad in BAD:
        bad.spoil(made)
    return made


@pytest.fixture(scope="module")
def report(environment: scratch.Scratch) -> dict[str, Any]:
    """Give what a process saw that imported core."""
    ops = [bad.package for bad in BAD]
    loaded: dict[str, Any] = json.loads(environment.run("-c", f"OPS = {ops}\n{REPORT}").stdout)
    return loaded


def test_the_good_plugins_work(report):
    assert report["add_custom"] == [2.0, 2.0]
    assert report["scale_shift"] == [4.0, 4.0]
    good = {"custom-pypto-add-custom", "acme-scale-shift"}
    assert {report["plugins"][name]["status"] for name in good} == {"loaded"}


@each_bad_plugin
def test_it_is_set_aside_and_explained(bad, report, environment):
    plugin = report["plugins"][bad.name]
    assert plugin["status"] == bad.expected["status"]
    assert bad.reason(environment).fullmatch(plugin["reason"]), plugin["reason"]


def test_there_is_one_warning_for_each(report, environment):
    assert sorted(category for category, _ in report["warnings"]) == sorted(
        f"Plugin{bad.expected['status'].capitalize()}Warning" for bad in BAD
    )
    texts = [text for _, text in report["warnings"]]
    for bad in BAD:
        own = [text for text in texts if f"({bad.name} 0.1.0)" in text]
        assert len(own) == 1
        assert bad.reason(environment).search(own[0])


@each_bad_plugin
def test_touching_its_op_explains(bad, report, environment):
    told = report["touched"][bad.package]
    assert told.startswith("AttributeError: ")
    assert bad.reason(environment).search(told), told


def test_strict_mode_raises(environment):
    done = environment.run(
        "-c", "import custom_pypto", check=False, environment={"CUSTOM_PYPTO_STRICT": "1"}
    )
    assert done.returncode == 1
    assert "PluginError: " in done.stderr


def test_list_shows_each_reason(environment):
    shown = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    reasons = {plugin["distribution"]: plugin["reason"] for plugin in shown}
    lines = environment.custom_pypto("list").stdout.splitlines()
    for bad in BAD:
        assert bad.reason(environment).fullmatch(reasons[bad.name])
        for line in reasons[bad.name].splitlines():
            assert f"  {line}" in lines


def test_doctor_shows_each_as_a_problem(environment):
    done = environment.custom_pypto("doctor", "--json", check=False)
    assert done.returncode == 1
    plugins = json.loads(done.stdout)["sections"]["plugins"]
    problems = [probe for probe in plugins if probe["level"] == "problem"]
    assert len(problems) == len(BAD)
    for bad in BAD:
        (own,) = (probe for probe in problems if probe["advice"].endswith(f" {bad.name}"))
        assert bad.reason(environment).search(own["remark"])
