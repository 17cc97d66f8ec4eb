"""Plugin projects that tests write into a folder and build as a build front end would."""

from __future__ import annotations

import atexit
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import custom_pypto_build
from fork_server import ForkServer

PACKAGES = Path(custom_pypto_build.__file__).resolve().parents[1]

# The note and symbols of CUSTOM_PYPTO_PLUGIN, without the seconds that torch's headers take to
# compile.
PLUGIN_CPP = r"""
#include <custom_pypto/abi.h>
#include <cstddef>
#include "answer.h"
CUSTOM_PYPTO_RECORD_ABI
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT int custom_pypto_register_v1(char*, std::size_t) { return 0; }
EXPORT void custom_pypto_unregister_v1(void) {}
EXPORT int answer() { return ANSWER; }
"""

OPS = """\
[tiny]
schema = "tiny(Tensor self, int k=3) -> Tensor"

["tiny.b"]
schema = "tiny.b(Tensor self) -> Tensor"
"""

PYPROJECT = """
[build-system]
requires = ["custom-pypto-build"]
build-backend = "custom_pypto_build"

[project]
name = "custom-pypto-tiny"
version = "0.3.0"

[project.entry-points."custom_pypto.plugins"]
tiny = "custom_pypto_tiny"

[tool.custom-pypto]
"""

SOURCES = 'sources = ["csrc/**/*.cpp"]\n'

# A build front end: a process in the project's folder that calls one hook. Its last
# line names the modules of torch and of the plugin that the build imported.
_RUN_HOOK = """
import json, os, sys
os.environ.clear()
os.environ.update({variables})
os.chdir({folder!r})
import custom_pypto_build as backend
result = backend.{hook}(*{arguments})
bad = [m for m in sys.modules if m.split(".")[0] in ("torch", "custom_pypto", "custom_pypto_tiny")]
print("\\n" + json.dumps({{"result": result, "imported": bad}}))
"""
# Imported once, in the server: that takes longer than most of these builds.
_IMPORTS = "import custom_pypto_build, custom_pypto_build.setuptools_backend, setuptools.build_meta"
_READ_AT_START = ("PYTHONHASHSEED", "PYTHONPATH")
_AT_EXIT = ExitStack()
atexit.register(_AT_EXIT.close)


@cache
def _server() -> ForkServer:
    return _start(_AT_EXIT, environment(), _IMPORTS)


def _start(until: ExitStack, variables: Mapping[str, str], imports: str) -> ForkServer:
    folder = Path(until.enter_context(TemporaryDirectory(prefix="hooks-")))
    own = {name: variables.get(name, "") for name in (*_READ_AT_START, "PYTHONWARNINGS")}
    return until.enter_context(
        closing(ForkServer([], folder, options=(), imports=imports, variables=own))
    )


class BuildFailedError(Exception):
    """A hook ended with an error; the text is what the author sees."""


def tiny_project(root: Path, table: str = SOURCES) -> Project:
    """A plugin with one source, `csrc/tiny.cpp`, and one header that it includes."""
    project = Project(root)
    project.write("csrc/tiny.cpp", PLUGIN_CPP)
    project.write("csrc/answer.h", "#define ANSWER 42\n")
    project.write("ops.toml", OPS)
    project.write("src/custom_pypto_tiny/__init__.py", '"""Tiny."""\n')
    project.configure(table)
    return project


class Project:
    """The folder of a plugin, and what its last build said."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = ""
        self.imported: list[str] = []

    def configure(self, table: str) -> None:
        """Make `table` the content of [tool.custom-pypto]."""
        self.write("pyproject.toml", PYPROJECT + table)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def hook(self, name: str, *args: object, env: Mapping[str, str] | None = None) -> Any:
        """Call a hook of the backend in a process of its own; raises BuildFailedError."""
        variables = environment(env)
        arguments = json.loads(json.dumps(args, default=str))
        code = _RUN_HOOK.format(
            variables=variables, folder=str(self.root), hook=name, arguments=arguments
        )
        if env and not env.keys().isdisjoint(_READ_AT_START):
            with ExitStack() as until:
                process = _start(until, variables, "pass").run(code, [], {})
        else:
            process = _server().run(code, [], {})
        self.output = process.stdout + process.stderr
        if process.returncode != 0:
            raise BuildFailedError(self.output)
        answer = json.loads(process.stdout.splitlines()[-1])
        self.imported = answer["imported"]
        return answer["result"]

    def wheel(self, env: Mapping[str, str] | None = None) -> Wheel:
        folder = self.root / "dist"
        return Wheel(folder / self.hook("build_wheel", folder, env=env))

    def compile_commands(self) -> str:
        """The ninja file of the last build."""
        [file] = self.root.glob("build/custom-pypto/*/build.ninja")
        return file.read_text(encoding="utf-8")

    def built(self) -> list[str]:
        """Return the files that ninja built last: the ends of its status lines."""
        return [line.split("] ", 1)[1] for line in self.output.splitlines() if line.startswith("[")]


class Wheel:
    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}

    @property
    def manifest(self) -> dict[str, Any]:
        document = json.loads(self.files["custom_pypto_tiny/custom_pypto_plugin.json"])
        assert isinstance(document, dict)
        return document

    @property
    def library(self) -> bytes:
        return self.files["custom_pypto_tiny/lib/libcustom_pypto_tiny.so"]


def found_first(folder: Path) -> dict[str, str]:
    """The variable with which Python finds modules in `folder` before others."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), environment()["PYTHONPATH"]])}


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what steers a compiler or checks, with `changes`."""
    steering = ("CC", "CXX", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "MAX_JOBS", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if name not in steering}
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
    # Most of these tests build a plugin that cannot be imported.
    unchecked = {"CUSTOM_PYPTO_BUILD_CHECK": "0"}
    return {**kept, **unchecked, "PYTHONPATH": path, "MAX_JOBS": "2", **(changes or {})}
