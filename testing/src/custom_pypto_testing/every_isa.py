"""Tests of a plugin's CPU kernels at every instruction set that the machine has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from custom_pypto import core
from custom_pypto_contract import guarded
from custom_pypto_contract.variables import CPU_ISA

if TYPE_CHECKING:
    import pytest

# A library chooses at its first call in a process, and imports and collection take seconds: hence a
# fork for each instruction set, after both. The last line names those that the machine has.
_RUN = """
import os, sys
import pytest, torch
import torch.fx.experimental.symbolic_shapes  # as assert_close and backward do
from custom_pypto import core
plugin, own, isas, *options = sys.argv[1:]
def is_used(isa):
    os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
    try:
        return core.cpu_isa(plugin) == isa
    except core.PluginError:
        return False
def wait_for_child():
    return os.wait()[1] == 0
class AtEachIsa:
    is_child, failed, threads = False, [], torch.get_num_threads()
    def pytest_runtestloop(self, session):
        session.config.get_terminal_writer().flush()
        for isa in available:
            if isa == own:
                continue
            if os.fork() == 0:
                self.is_child = True
                torch.set_num_threads(self.threads)
                if not is_used(isa):
                    pytest.exit(f"to collect the tests runs kernels of {plugin}", 1)
                return None  # pytest goes on
            if not wait_for_child():
                self.failed.append(isa)
        return True
available = []
for isa in isas.split():
    if os.fork() == 0:
        os._exit(not is_used(isa))
    if wait_for_child():
        available.append(isa)
# A child has none of OpenMP's threads, and would wait for them.
torch.set_num_threads(1)
runs = AtEachIsa()
status = pytest.main(options, plugins=[runs])
if runs.is_child:
    sys.exit(status)
print(*available)
sys.exit("".join(f"CUSTOM_PYPTO_CPU_ISA={isa} failed\\n" for isa in runs.failed) or status)
"""
_OPTIONS = (
    "-q",
    *("-p", "no:cacheprovider"),
    # pytest wants to rewrite the asserts of a plugin's whole distribution, and core is imported.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)


class EveryIsa:
    """Derive from it and name the plugin, and the files that test its kernels:

        class TestEveryIsa(custom_pypto_testing.EveryIsa):
            plugin = "add_custom"
            files = ("test_add_custom.py",)

    The files are beside the file of the class. They run at each instruction set of the machine, in
    a process of its own; except at the one of this process, in which they run anyway. They are
    imported once for all: let them call no kernel outside of tests and fixtures.
    """

    plugin: ClassVar[str]
    files: ClassVar[Sequence[str]]

    def test_uses_the_best_isa_or_the_one_that_is_forced(
        self, request: pytest.FixtureRequest
    ) -> None:
        """The best that the machine has, unless CUSTOM_PYPTO_CPU_ISA names one."""
        _, output, errors = _run(self.plugin, self._tests(request), request.config.rootpath)
        assert output, errors
        isas = output.splitlines()[-1].split()
        forced = os.environ.get(CPU_ISA)
        assert core.cpu_isa(self.plugin) == (forced if forced in isas else isas[-1])

    def test_kernels_of_every_other_isa(self, request: pytest.FixtureRequest) -> None:
        """The plugin's own tests pass with the kernels of each instruction set."""
        status, output, errors = _run(self.plugin, self._tests(request), request.config.rootpath)
        assert status == 0, f"{errors}{output}"

    def _tests(self, request: pytest.FixtureRequest) -> tuple[str, ...]:
        return tuple(str(Path(request.path).with_name(name)) for name in self.files)


@cache
def _run(plugin: str, tests: tuple[str, ...], folder: Path) -> tuple[int | None, str, str]:
    """Run tests at each instruction set, except the one that this process uses."""
    own, isas = str(core.cpu_isa(plugin)), " ".join(every_isa())
    return guarded.run(
        [sys.executable, "-c", _RUN, plugin, own, isas, *_OPTIONS, *tests],
        cwd=folder,
        # Idle threads of small calls would spin, which slows a busy machine.
        env={"OMP_WAIT_POLICY": "passive", **os.environ},
    )


def every_isa() -> list[str]:
    """The instruction sets of any processor that kernels are compiled for, in core's order."""
    header = Path(core.__file__).parent / "include" / "custom_pypto" / "cpu" / "isa.h"
    text = header.read_text(encoding="utf-8")
    return ["portable", *re.findall(r"(?:ordinary|int8)\((\w+), __VA_ARGS__\)", text)]
