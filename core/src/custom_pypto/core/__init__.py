"""Loads every installed op plugin; the ops are then ``torch.ops.custom_pypto.<op>``.

A plugin that is rejected or fails gives one warning, and the others load; `plugins` and
``custom-pypto list`` say why. docs/discovery.md says how plugins are found and checked. What their
authors import is `custom_pypto_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import torch  # noqa: F401  # the first thing to be missing, and what every module here needs
except Exception as error:
    from custom_pypto.core.torch_import import explained

    raise explained(error) from error

from custom_pypto_plugin import Reference, SampleInput

from custom_pypto.core.errors import (
    PluginError,
    PluginFailedWarning,
    PluginRejectedWarning,
    PluginWarning,
)
from custom_pypto.core.loader import start
from custom_pypto.core.npu_kernel import NpuKernelRecord
from custom_pypto.core.registry import OpRecord, PluginRecord
from custom_pypto.core.version import __version__

if TYPE_CHECKING:
    from custom_pypto_contract.contract import OpContract

__all__ = [
    "NpuKernelRecord",
    "OpRecord",
    "PluginError",
    "PluginFailedWarning",
    "PluginRecord",
    "PluginRejectedWarning",
    "PluginWarning",
    "__version__",
    "contract",
    "cpu_isa",
    "load_new",
    "npu_kernels",
    "ops",
    "plugins",
    "reference",
    "samples",
]


def load_new() -> None:
    """Load the plugins that were installed, or put on `sys.path`, after core was imported.

    A plugin that was loaded stays as it is, also if its distribution was replaced.

    Raises:
        PluginError: one cannot be loaded, and CUSTOM_PYPTO_STRICT is set.
    """
    start().load_new()


def plugins() -> tuple[PluginRecord, ...]:
    """Return every installed plugin: the loaded in loading order, then the others by name."""
    return start().plugins()


def ops() -> tuple[OpRecord, ...]:
    """Return the ops of the loaded plugins, by name."""
    return start().ops()


def cpu_isa(plugin: str) -> str | None:
    """Return the instruction set that the CPU kernels of a loaded plugin use.

    None if the plugin has no library, or the library does not report one. The names are those that
    CUSTOM_PYPTO_CPU_ISA can force.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: CUSTOM_PYPTO_CPU_ISA names one that the machine or the plugin lacks.
    """
    return start().cpu_isa(plugin)


def npu_kernels(plugin: str) -> tuple[NpuKernelRecord, ...]:
    """Return which NPU kernels the ops of a loaded plugin use, or would use, on this machine.

    Searches as the ops do at their first call on an NPU, and loads the libraries it finds; needs
    no NPU and no torch_npu.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: the plugin's library cannot report it.
    """
    return start().npu_kernels(plugin)


def samples(op: str, device: str = "cpu") -> tuple[SampleInput, ...]:
    """Return the sample inputs of `op` on `device`; empty when its plugin gives none.

    `op` is the name in an `OpRecord`, such as ``"add_custom"``.

    Raises:
        LookupError: no loaded plugin provides `op`.
        PluginError: the plugin's hook failed or returned something else than it must.
    """
    return start().samples(op, device)


def reference(op: str) -> Reference | None:
    """Return the reference implementation of `op`; None when its plugin gives none.

    Raises:
        LookupError: no loaded plugin provides `op`.
        PluginError: the plugin's hook failed or returned something else than it must.
    """
    return start().reference(op)


def contract(op: str) -> OpContract:
    """Return the contract of `op`: what ops.toml of its plugin says of it; docs/contract.md.

    Raises:
        LookupError: no loaded plugin provides `op`.
    """
    return start().contract(op)


# Last, because plugins import the names above while they load.
start()
