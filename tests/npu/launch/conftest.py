"""A plugin that shows what a launch marshals, simulated kernels for it, and processes to run it."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_simulator_build import build_kernels

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import process  # noqa: E402


def folder_of(package: str) -> Path:
    """Where an installed package is; importing torch here would import torch_npu too."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The opp package of kernels.cpp."""
    return build_kernels([HERE / "kernels.cpp"], tmp_path_factory.mktemp("opp"))


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled plugin.cpp."""
    library = tmp_path_factory.mktemp("plugin") / "libplugin.so"
    flags = "-std=c++17 -O2 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra"
    command = ["c++", *shlex.split(flags), "-Werror", "-DTORCH_TARGET_VERSION=0x020a000000000000"]
    torch = folder_of("torch")
    command += [f"-I{folder_of('custom_pypto') / 'core' / 'include'}"]
    command += ["-isystem", str(torch / "include"), "-shared", str(HERE / "plugin.cpp")]
    command += ["-o", str(library), f"-L{torch / 'lib'}"]
    subprocess.run([*command, "-ltorch_cpu", "-Wl,--no-undefined", "-ldl"], check=True)
    return library


@pytest.fixture
def launch(tmp_path: Path, package: Path, plugin: Path) -> Callable[..., Any]:
    """Run code that calls the plugin's ops with torch_npu; return what it gave."""

    def run_code(code: str, **variables: str) -> Any:
        prologue = f"load({str(plugin)!r})\n"
        environment = {"ASCEND_CUSTOM_OPP_PATH": str(package)} | variables
        ended = process.run(prologue + code, tmp_path, **environment)
        assert ended.returncode == 0, ended.output
        given = [json.loads(text) for text in ended.given]
        return given[0] if len(given) == 1 else given

    return run_code
