"""What commands say, in a real environment, of plugins that do not load."""

import json
from collections.abc import Callable
from pathlib import Path

import plugin_factory
from fork_server import ForkServer
from plugin_factory import Site
from scratch import Scratch

# Code of its module, and how the process ends.
ENDING = {
    "endless_wait": ("import threading; threading.Event().wait()", "did not end"),
    "crash": ("import ctypes; ctypes.string_at(0)", "crashed with SIGSEGV"),
}
FAILURE = "importing its module 'custom_pypto_failing' failed: LookupError: no licence ("


def test_doctor_shows_which_plugins_end_the_process(
    new_environment: Callable[..., Scratch], tmp_path: Path
) -> None:
    """core/tests/test_cli_list.py: `list` shows them, too."""
    environment = new_environment("custom_pypto_add_custom")
    server = ForkServer([], tmp_path, imports="")
    server.close()
    site = Site(environment.site_packages, server, plugin_factory.compile_library(tmp_path))
    for name, (code, _) in ENDING.items():
        site.install(name, code)
    site.install("failing", "raise LookupError('no licence')")
    options = ("--json", "--time-limit", "8")
    done = environment.custom_pypto("doctor", *options, check=False)
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
