"""Broken plugins in a real environment: those that a build refuses, and those that end the process.

core/tests/test_loader_failures.py has what else keeps a plugin from loading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plugin_factory
import pytest
from custom_pypto_discovery.printable import escape
from fork_server import ForkServer
from plugin_factory import Site
from scratch import Scratch

PYPROJECT = """
[build-system]
requires = ["custom-pypto-build"]
build-backend = "custom_pypto_build"
[project]
name = "{0}"
version = "0.1.0"
[project.entry-points."custom_pypto.plugins"]
{0} = "{0}"
[tool.custom-pypto]
"""
OPS = """
[{0}]
schema = "{0}(Tensor self) -> Tensor"
tensors.self = {{}}
outputs.result = {{ like = "self" }}
"""
LIBRARY = """
#include <stdexcept>

#include <torch/csrc/stable/ops.h>

#include "ops.h"

extern "C" void a_function_that_no_library_has();

static ops::{0}::Outputs run(const ops::{0}::Arguments& a, const ops::{0}::Sizes&) {{
  {1}
  return {{torch::stable::clone(a.self)}};
}}

CUSTOM_PYPTO_PLUGIN(plugin) {{
  plugin.def<ops::{0}>().impl<&run>("CPU");
  {2}
}}
"""
# What is wrong: the statement in its kernel and the one in its registration, or its module; and the
# reason, in which "..." is any text.
BAD: dict[str, tuple[str | tuple[str, str], str]] = {
    "undefined_symbol": (
        ("a_function_that_no_library_has();", ""),
        (
            "the library cannot be opened: .../libcustom_pypto_undefined_symbol.so: undefined"
            " symbol: a_function_that_no_library_has; a symbol of torch means that the plugin needs"
            " a newer torch, any other that it was linked without a library it uses"
        ),
    ),
    "throwing_registration": (
        ("", 'throw std::runtime_error("the licence server is on holiday");'),
        "registering its ops failed: the licence server is on holiday",
    ),
    "import_error": (
        "import a_module_that_nobody_has",
        (
            "importing its module 'import_error' failed: ModuleNotFoundError: No module named"
            " 'a_module_that_nobody_has' (.../import_error/__init__.py, line 1)"
        ),
    ),
}
# Two that work are loaded beside them.
REPORT = """
import json, warnings
warnings.simplefilter("ignore")
import custom_pypto.core as core, torch
print(json.dumps({
    "plugins": {plugin.name: [plugin.status, plugin.reason] for plugin in core.plugins()},
    "add_custom": torch.ops.custom_pypto.add_custom(torch.ones(2), torch.ones(2)).tolist(),
}))
"""


def pattern(reason: str) -> re.Pattern[str]:
    return re.compile(re.escape(reason).replace(r"\.\.\.", ".*"))


@dataclass(frozen=True)
class Installed:
    """An environment with the bad plugins and a good one; `refusals` are the errors of builds."""

    environment: Scratch
    refusals: dict[str, str]


def write(project: Path, name: str, fault: str | tuple[str, str]) -> None:
    """Write the project of a bad plugin."""
    (project / name).mkdir(parents=True)
    pyproject = PYPROJECT.format(name)
    module = ""
    if isinstance(fault, tuple):
        pyproject += 'sources = ["plugin.cpp"]\n'
        (project / "plugin.cpp").write_text(LIBRARY.format(name, *fault))
    else:
        module = fault
    (project / "pyproject.toml").write_text(pyproject)
    (project / "ops.toml").write_text(OPS.format(name))
    (project / name / "__init__.py").write_text(module)


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory,
    new_environment: Callable[..., Scratch],
    wheel: Callable[[str], Path],
) -> Installed:
    """Build each twice: as a user does, and without the check that refuses it."""
    root = tmp_path_factory.mktemp("bad")
    made = new_environment("custom_pypto_build")
    refusals, wheels = {}, []
    for name, (fault, _) in BAD.items():
        write(root / name, name, fault)
        flags = {"LDFLAGS": "-Wl,--unresolved-symbols=ignore-all"}
        with pytest.raises(AssertionError) as caught:
            made.build_wheel(root / name, root / "wheels" / name, flags)
        refusals[name] = str(caught.value)
        flags["CUSTOM_PYPTO_BUILD_CHECK"] = "0"
        wheels.append(made.build_wheel(root / name, root / "wheels" / name, flags))
    made.install(wheel("custom_pypto_add_custom"), *wheels)
    return Installed(made, refusals)


@pytest.fixture(scope="module")
def report(installed: Installed) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(installed.environment.run("-c", REPORT).stdout)
    return found


@pytest.mark.parametrize(("name", "reason"), [(name, BAD[name][1]) for name in BAD])
def test_build_and_import_refuse_it_with_the_same_words(
    installed: Installed, report: dict[str, Any], name: str, reason: str
) -> None:
    status, said = report["plugins"][name]
    assert status == "failed"
    assert pattern(reason).fullmatch(said), said
    # pip indents what the build says.
    error = " ".join(installed.refusals[name].split())
    assert f"error: the plugin {name!r} is refused: " in error
    assert pattern(reason).search(error), error


def test_the_good_plugin_works(report: dict[str, Any]) -> None:
    assert report["add_custom"] == [2.0, 2.0]


def test_list_and_doctor_show_each_reason(installed: Installed, report: dict[str, Any]) -> None:
    lines = installed.environment.custom_pypto("list").stdout.splitlines()
    done = installed.environment.custom_pypto("doctor", "--json", check=False)
    assert done.returncode == 1
    plugins = json.loads(done.stdout)["sections"]["plugins"]
    problems = [probe for probe in plugins if probe["level"] == "problem"]
    assert len(problems) == len(BAD)
    for name in BAD:
        reason = report["plugins"][name][1]
        assert f"  {escape(reason)}" in lines
        [own] = [probe for probe in problems if probe["advice"].endswith(f" {name}")]
        assert reason in own["remark"]


# Code of its module or what its library registers, and how the process ends.
ENDING = {
    "endless_wait": ("import threading; threading.Event().wait()", "did not end"),
    "crash": ("import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
    "exit_of_c": ("exit_of_c(Tensor x) -> Tensor\n=?exit", "ended with status 0 before it was"),
}


@pytest.fixture(scope="module")
def ending(
    new_environment: Callable[..., Scratch], tmp_path_factory: pytest.TempPathFactory
) -> Scratch:
    """An environment with a good plugin, and with those that end the process."""
    environment, folder = new_environment("custom_pypto_add_custom"), tmp_path_factory.mktemp("end")
    server = ForkServer([], folder, imports="")
    server.close()
    site = Site(environment.site_packages, server, plugin_factory.compile_library(folder))
    for name, (fault, _) in ENDING.items():
        site.install(name, **{"registers" if fault.startswith(name) else "code": fault})
    return environment


def test_list_shows_which_plugins_end_the_process(ending: Scratch) -> None:
    done = ending.custom_pypto("list", "--json", "--time-limit", "8")
    plugins = {each["name"]: each for each in json.loads(done.stdout)["plugins"]}
    assert plugins.pop("add_custom")["status"] == "loaded"
    assert plugins.keys() == ENDING.keys()
    for name, plugin in plugins.items():
        assert plugin["status"] == "failed"
        how = f"loading it ended the process: {ENDING[name][1]}"
        assert plugin["reason"].startswith(how), plugin["reason"]
        advice = f"set CUSTOM_PYPTO_DISABLE={name}, or pip uninstall {plugin['distribution']}"
        assert plugin["reason"].endswith(f"\n{advice}")


# The others would end the process first.
ONE = {"CUSTOM_PYPTO_DISABLE": ",".join(ENDING.keys() - {"exit_of_c"})}


def test_info_shows_that_a_plugin_ends_the_process(ending: Scratch) -> None:
    shown = ending.custom_pypto("info", "custom-pypto-exit-of-c", environment=ONE).stdout
    assert "status        failed\n" in shown
    assert "ended with status 0 before it was done" in shown


def test_doctor_shows_which_plugins_end_the_process(ending: Scratch) -> None:
    done = ending.custom_pypto("doctor", "--json", "--time-limit", "8", check=False)
    probes = {each["name"]: each for each in json.loads(done.stdout)["sections"]["plugins"]}
    assert probes["add_custom"]["level"] == "ok"
    for name, (_, how) in ENDING.items():
        assert probes[name]["level"] == "problem"
        assert f"failed: loading it ended the process: {how}" in probes[name]["remark"]
    core = probes["import custom_pypto.core"]
    assert core["value"].startswith("works only without ")
    assert core["advice"].startswith("set CUSTOM_PYPTO_DISABLE=")
    for text in (core["value"], core["advice"]):
        assert all(name in text for name in ENDING)


def test_the_log_says_which_plugin_ends_the_process(ending: Scratch) -> None:
    code = "import logging; logging.basicConfig(level=logging.DEBUG); import custom_pypto.core"
    done = ending.run("-c", code, environment=ONE)
    assert done.stderr.splitlines()[-1].startswith("DEBUG:custom_pypto:exit_of_c: ")
