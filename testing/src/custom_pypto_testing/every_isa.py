"""Tests of a plugin's CPU kernels at every instruction set that the machine has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
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
plugin, own, isas, *files = sys.argv[1:]
# pytest wants to rewrite the asserts of a plugin's whole distribution, and core is imported.
quiet = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
def is_used(isa):
    os.environ["CUSTOM_PYPTO_CPU_ISA"] = isa
    try:
        return core.cpu_isa(plugin) == isa
    except core.PluginError:
        return False
class AtEachIsa:
    has_run, is_child, failed, threads = False, False, [], torch.get_num_threads()
    def pytest_runtestloop(self, session):
        self.has_run = True
        session.config.get_terminal_writer().flush()
        for isa in (each for each in available if each != own):
            if os.fork() == 0:
                self.is_child = True
                torch.set_num_threads(self.threads)
                if not is_used(isa):
                    pytest.exit(f"collecting the tests calls a kernel of {plugin}", 1)
                return None  # pytest goes on
            if os.wait()[1]:
                self.failed.append(isa)
        return True
available = []
for isa in isas.split():
    if os.fork() == 0:
        os._exit(not is_used(isa))
    if not os.wait()[1]:
        available.append(isa)
# A child has none of OpenMP's threads, and would wait for them.
torch.set_num_threads(1)
runs = AtEachIsa()
status = pytest.main(["-q", "-p", "no:cacheprovider", "-W", quiet, *files], plugins=[runs])
if runs.is_child:
    sys.exit(status)
if not runs.has_run:
    sys.exit("the tests were run by another plugin of pytest, such as xdist: remove its options")
print(*available)
sys.exit("".join(f"CUSTOM_PYPTO_CPU_ISA={isa} failed\\n" for isa in runs.failed) or status)
"""


class EveryIsa:
    """Derive from it and name the plugin, and the files that test its kernels:

        class TestEveryIsa(custom_pypto_testing.EveryIsa):
            plugin = "add_custom"
            files = ("test_add_custom.py",)

    The files are beside the file of the class. They run at each instruction set of the machine, in
    a process of its own; except at the one of this process, in which they run anyway. They are
    collected once, which must call no kernel.
    """

    plugin: ClassVar[str]
    files: ClassVar[Sequence[str]]

    def test_kernels_of_every_isa(self, request: pytest.FixtureRequest) -> None:
        """The plugin's own tests pass with each; it uses the best, or the one that is forced."""
        own = str(core.cpu_isa(self.plugin))
        files = [str(request.path.with_name(name)) for name in self.files]
        status, output, errors = guarded.run(
            [sys.executable, "-c", _RUN, self.plugin, own, " ".join(every_isa()), *files],
            cwd=request.config.rootpath,
            # Idle threads of small calls would spin, which slows a busy machine.
            env={"OMP_WAIT_POLICY": "passive", **os.environ},
        )
        assert status == 0, f"{errors}{output}"
        isas = output.splitlines()[-1].split()
        forced = os.environ.get(CPU_ISA)
        assert own == (forced if forced in isas else isas[-1])


def every_isa() -> list[str]:
    """The instruction sets of any processor that kernels are compiled for, in core's order."""
    header = Path(core.__file__).parent / "include" / "custom_pypto" / "cpu" / "isa.h"
    text = header.read_text(encoding="utf-8")
    return ["portable", *re.findall(r"(?:any|bf16|int8)\((\w+), __VA_ARGS__\)", text)]
