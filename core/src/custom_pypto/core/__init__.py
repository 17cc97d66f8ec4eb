"""Loads every installed op plugin; the ops are then ``torch.ops.custom_pypto.<op>``.

A plugin that is refused or fails is quarantined, with one warning, and the others load; `plugins`
and ``custom-pypto list`` say why. docs/discovery.md tells how plugins are found and judged, and
docs/hooks.md what they contribute.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401  # the first thing to be missing, and what every module here needs
except Exception as error:
    from custom_pypto.core.torch_import import explained

    raise explained(error) from error

from custom_pypto.core.contributions import Autograd, Reference, SampleInput
from custom_pypto.core.errors import PluginError, PluginQuarantinedWarning, PluginWarning
from custom_pypto.core.hookspecs import hookimpl
from custom_pypto.core.loader import start
from custom_pypto.core.npu_kernel import NpuKernelRecord
from custom_pypto.core.registry import OpRecord, PluginRecord
from custom_pypto.core.version import __version__

__all__ = [
    "Autograd",
    "NpuKernelRecord",
    "OpRecord",
    "PluginError",
    "PluginQuarantinedWarning",
    "PluginRecord",
    "PluginWarning",
    "Reference",
    "SampleInput",
    "__version__",
    "cpu_level",
    "hookimpl",
    "npu_kernels",
    "ops",
    "plugins",
    "reference",
    "samples",
]


def plugins() -> tuple[PluginRecord, ...]:
    """Return every installed plugin: the loaded in loading order, then the others by name."""
    return start().plugins()


def ops() -> tuple[OpRecord, ...]:
    """Return the ops of the loaded plugins, by name."""
    return start().ops()


def cpu_level(plugin: str) -> str | None:
    """Return the instruction set level that the CPU kernels of a loaded plugin use.

    None for a plugin whose library tells of none. The levels are those that CUSTOM_PYPTO_CPU_ISA
    can force.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: CUSTOM_PYPTO_CPU_ISA asks for a level that the machine or the plugin lacks.
    """
    return start().cpu_level(plugin)


def npu_kernels(plugin: str) -> tuple[NpuKernelRecord, ...]:
    """Return which NPU kernels the ops of a loaded plugin use, or would use, on this machine.

    Searches as the ops do at their first call on an NPU, and loads the libraries it finds; needs
    no NPU and no torch_npu.

    Raises:
        LookupError: no plugin of that name is loaded.
        PluginError: the plugin's library cannot tell.
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


# Last, because plugins import the names above while they load.
start()
