"""Tests of a plugin's CPU kernels at every instruction set that the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from custom_pypto import core

if TYPE_CHECKING:
    import pytest

VARIABLE = "CUSTOM_PYPTO_CPU_ISA"
ISAS = ("portable", "avx2", "avx512", "avx512_bf16", "neon", "neon_bf16")
"""Each includes those before it, within a processor family; see custom_pypto/cpu/isa.h."""

_BEST = """
import os, sys
from custom_pypto import core
for isa in sys.argv[2:]:
    os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
    try:
        print(core.cpu_isa(sys.argv[1]))
        break
    except core.PluginError:
        pass
"""


class EveryIsa:
    """Derive from it and name the plugin, and the files that test its kernels:

        class TestEveryIsa(custom_pypto_testing.EveryIsa):
            plugin = "add_custom"
            files = ("test_add_custom.py",)

    The files are beside that of the class. They are run at each instruction set of the machine in a
    process of its own; not at the one that this process uses, in which they run anyway.
    """

    plugin: ClassVar[str]
    files: ClassVar[Sequence[str]]

    def test_uses_the_best_isa_or_the_one_that_is_forced(self) -> None:
        """The best that the machine has, unless CUSTOM_PYPTO_CPU_ISA names one."""
        assert core.cpu_isa(self.plugin) == (os.environ.get(VARIABLE) or best_isa(self.plugin))

    def test_kernels_of_every_other_isa(self, request: pytest.FixtureRequest) -> None:
        """The plugin's own tests pass with the kernels of each."""
        for isa in isas_up_to(best_isa(self.plugin)):
            if isa != core.cpu_isa(self.plugin):
                self._run_tests(isa, request)

    def _run_tests(self, isa: str, request: pytest.FixtureRequest) -> None:
        tests = [str(Path(request.path).with_name(name)) for name in self.files]
        own = f"{request.path}::{type(self).__name__}::{_OWN_TEST}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", own, *tests],
            cwd=request.config.rootpath,
            env={**os.environ, VARIABLE: isa},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{VARIABLE}={isa}\n{done.stdout}{done.stderr}"


_OWN_TEST = EveryIsa.test_uses_the_best_isa_or_the_one_that_is_forced.__name__


@cache
def best_isa(plugin: str) -> str:
    """The best instruction set of this machine that `plugin` has kernels for."""
    done = subprocess.run(
        [sys.executable, "-c", _BEST, plugin, *reversed(ISAS)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def isas_up_to(best: str) -> tuple[str, ...]:
    """The instruction sets of a machine whose best one is `best`."""
    family = ("neon",) if best.startswith("neon") else ("avx",)
    return tuple(
        isa for isa in ISAS[: ISAS.index(best) + 1] if isa == "portable" or isa.startswith(family)
    )
