"""What commands say, in a real environment, of plugins that do not load."""

import json
from collections.abc import Callable

import plugin_factory
import pytest
from fork_server import ForkServer
from plugin_factory import Site
from scratch import Scratch

# Code of its module, and how the process ends. The library of another calls `exit`.
ENDING = {
    "endless_wait": ("import threading; threading.Event().wait()", "did not end"),
    "crash": ("import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
}
EXIT = "exit_of_c(Tensor x) -> Tensor\n=?exit"
FAILURE = "importing its module 'custom_pypto_failing' failed: LookupError: no licence ("


@pytest.fixture(scope="module")
def ending(
    new_environment: Callable[..., Scratch], tmp_path_factory: pytest.TempPathFactory
) -> Scratch:
    """An environment with a good plugin, one that fails, and those that end the process."""
    environment, folder = new_environment("custom_pypto_add_custom"), tmp_path_factory.mktemp("end")
    server = ForkServer([], folder, imports="")
    server.close()
    site = Site(environment.site_packages, server, plugin_factory.compile_library(folder))
    for name, (code, _) in ENDING.items():
        site.install(name, code)
    site.install("exit_of_c", registers=EXIT)
    site.install("failing", "raise LookupError('no licence')")
    return environment


def test_doctor_shows_which_plugins_end_the_process(ending: Scratch) -> None:
    """core/tests/test_cli_list.py: `list` shows them, too."""
    options = ("--json", "--time-limit", "8")
    disabled = {"CUSTOM_PYPTO_DISABLE": "exit_of_c"}
    done = ending.custom_pypto("doctor", *options, check=False, environment=disabled)
    checks = {each["name"]: each for each in json.loads(done.stdout)["sections"]["plugins"]}
    assert checks["add_custom"]["level"] == "ok"
    assert checks["failing"]["level"] == "problem"
    assert FAILURE in checks["failing"]["remark"]
    for name, (_, how) in ENDING.items():
        assert checks[name]["level"] == "problem"
        assert f"failed: loading it ended the process: {how}" in checks[name]["remark"]
    core = checks["import custom_pypto.core"]
    assert core["value"].startswith("works only without ")
    assert core["advice"].startswith("set CUSTOM_PYPTO_DISABLE=")
    for text in (core["value"], core["advice"]):
        assert all(name in text for name in ENDING)


def test_the_log_says_which_plugin_ends_the_process(ending: Scratch) -> None:
    code = "import logging; logging.basicConfig(level=logging.DEBUG); import custom_pypto.core"
    # The others would end the process first.
    others = {"CUSTOM_PYPTO_DISABLE": ",".join(ENDING)}
    done = ending.run("-c", code, environment=others)
    assert done.stderr.splitlines()[-1].startswith("DEBUG:custom_pypto:exit_of_c: ")
