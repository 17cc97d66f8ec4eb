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

# A library chooses at its first call in a process, and imports take seconds: hence a fork for each
# instruction set, after the imports.
_OWN_ISAS = """
import os, sys
from custom_pypto import core
for isa in sys.argv[2:]:
    if os.fork() == 0:
        os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
        try:
            os._exit(0 if core.cpu_isa(sys.argv[1]) == isa else 1)
        except core.PluginError:
            os._exit(1)
    if os.wait()[1] == 0:
        print(isa)
"""
_RUN_TESTS = """
import os, sys
import pytest
from custom_pypto import core
plugin, isas, *options = sys.argv[1:]
for isa in isas.split():
    if os.fork() == 0:
        os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
        assert core.cpu_isa(plugin) == isa
        sys.exit(pytest.main(options))
    if os.wait()[1] != 0:
        sys.exit(f"CUSTOM_PYPTO_CPU_ISA={isa}")
"""
_OPTIONS = (
    *("-q", "-p", "no:cacheprovider"),
    # pytest wants to rewrite the asserts of a plugin's whole distribution, and core is imported.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)


class EveryIsa:
    """Derive from it and name the plugin, and the files that test its kernels:

        class TestEveryIsa(custom_pypto_testing.EveryIsa):
            plugin = "add_custom"
            files = ("test_add_custom.py",)

    The files are beside the file of the class. They run at each instruction set of the machine, in
    a process of its own; except at the one of this process, in which they run anyway.
    """

    plugin: ClassVar[str]
    files: ClassVar[Sequence[str]]

    def test_uses_the_best_isa_or_the_one_that_is_forced(self) -> None:
        """The best that the machine has, unless CUSTOM_PYPTO_CPU_ISA names one."""
        isas = isas_of(self.plugin)
        forced = os.environ.get(CPU_ISA)
        assert core.cpu_isa(self.plugin) == (forced if forced in isas else isas[-1])

    def test_kernels_of_every_other_isa(self, request: pytest.FixtureRequest) -> None:
        """The plugin's own tests pass with the kernels of each."""
        others = [isa for isa in isas_of(self.plugin) if isa != core.cpu_isa(self.plugin)]
        tests = [str(Path(request.path).with_name(name)) for name in self.files]
        status, output, errors = guarded.run(
            [sys.executable, "-c", _RUN_TESTS, self.plugin, " ".join(others), *_OPTIONS, *tests],
            cwd=request.config.rootpath,
            # Idle threads of small calls would spin, which slows a busy machine.
            env={"OMP_WAIT_POLICY": "passive", **os.environ},
        )
        assert status == 0, f"{errors}{output}"


@cache
def isas_of(plugin: str) -> tuple[str, ...]:
    """The instruction sets of this machine that `plugin` has kernels for; the best one is last."""
    status, output, errors = guarded.run([sys.executable, "-c", _OWN_ISAS, plugin, *every_isa()])
    assert status == 0, errors
    return tuple(output.split())


def every_isa() -> list[str]:
    """The instruction sets of any processor that kernels are compiled for, in core's order."""
    header = Path(core.__file__).parent / "include" / "custom_pypto" / "cpu" / "isa.h"
    text = header.read_text(encoding="utf-8")
    return ["portable", *re.findall(r"(?:ordinary|int8)\((\w+), __VA_ARGS__\)", text)]
