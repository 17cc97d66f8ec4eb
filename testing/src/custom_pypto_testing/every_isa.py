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
# instruction set, after the imports. The last line names those that the machine has.
_RUN = """
import os, sys
import pytest
from custom_pypto import core
plugin, own, isas, *options = sys.argv[1:]
def succeeds(isa, run):
    if os.fork() == 0:
        os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
        try:
            found = core.cpu_isa(plugin)
        except core.PluginError:
            found = None
        sys.exit(run() if found == isa else 1)
    return os.wait()[1] == 0
available = [isa for isa in isas.split() if succeeds(isa, int)]
others = (isa for isa in available if isa != own)
failed = [isa for isa in others if not succeeds(isa, lambda: pytest.main(options))]
print(*available)
sys.exit("".join(f"CUSTOM_PYPTO_CPU_ISA={isa} failed\\n" for isa in failed) or 0)
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
    a process of its own; except at the one of this process, in which they run anyway.
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
