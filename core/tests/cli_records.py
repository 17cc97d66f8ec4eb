"""Records of plugins as custom_pypto.core gives them, for the tests of the command line."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from custom_pypto.core import NpuKernelRecord, OpRecord, PluginRecord
from custom_pypto_cli import main, subprocess_call
from custom_pypto_contract import contract_data
from custom_pypto_contract.manifest import make_op
from custom_pypto_discovery.installed_plugin import Status

SITE = Path("/site/custom_pypto_add_custom")
OPS = {"add_custom": ("CPU", "PrivateUse1"), "add_custom_backward": ("CPU",)}
TYPES = ("(Tensor self, Tensor other) -> Tensor", "(Tensor self) -> (Tensor, Tensor)")
ADD = PluginRecord(
    name="add_custom",
    version="0.1.0",
    distribution="custom-pypto-add-custom",
    status=Status.LOADED,
    reason="",
    ops=tuple(
        OpRecord(name, f"{name}{type_}", "add_custom", keys)
        for (name, keys), type_ in zip(OPS.items(), TYPES, strict=True)
    ),
    folder=SITE,
    library=SITE / "lib/libcustom_pypto_add_custom.so",
    library_sha256="5a" * 32,
    opp=None,
    load_time=0.25,
)
BROKEN = PluginRecord(
    *("broken", "", "custom-pypto-broken"),
    *(Status.REJECTED, "its library is missing; reinstall it"),
    *((), None, None, "", None, 0.0),
)

ADD_KERNEL = NpuKernelRecord(
    op="add_custom",
    symbols=("aclnnAddCustom", "aclnnAdd"),
    symbol="aclnnAdd",
    library=Path("/cann/lib64/libopapi.so"),
    origin="CANN",
    searched=(),
)

MISSING_KERNEL = NpuKernelRecord(
    op="",
    symbols=("aclnnOther",),
    symbol="",
    library=None,
    origin="",
    searched=("CANN: libopapi.so: not there", "a custom opp package: ASCEND_OPP_PATH is not set"),
)


def _call_here(
    function: Callable[..., object], *arguments: object, **options: object
) -> subprocess_call.Outcome:
    """Stand in for `subprocess_call.call`: the core of the tests is in this process alone."""
    try:
        return subprocess_call.Outcome(value=function(*arguments))
    except Exception as error:
        return subprocess_call.Outcome(failure=f"{type(error).__name__}: {error}")


class CommandLine:
    """Runs commands on a core that has chosen plugins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def use(self, *records: PluginRecord, **members: Any) -> None:
        """Put a module in the place of core; `members` replace what it has by default."""
        schemas = {op.name: op.schema for record in records for op in record.ops}
        defaults = {
            "plugins": lambda: records,
            "PluginError": RuntimeError,
            "cpu_isa": lambda plugin: "avx2",
            "npu_kernels": lambda plugin: (),
            "contract": lambda op: contract_data.read_contract(
                make_op({"schema": schemas[op]}).data
            ),
        }
        core = SimpleNamespace(**(defaults | members))
        self._monkeypatch.setitem(sys.modules, "custom_pypto.core", core)
        self._monkeypatch.setattr(subprocess_call, "call", _call_here)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command that ends with `status`; return what it printed, error or not."""
        assert main(list(arguments)) == status
        printed = self._capsys.readouterr()
        assert not (printed.out and printed.err)
        return printed.out or printed.err
