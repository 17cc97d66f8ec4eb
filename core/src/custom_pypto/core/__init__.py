"""Loads every installed op plugin; the ops are then ``torch.ops.custom_pypto.<op>``.

A plugin that is rejected or fails gives one warning, and the others load; `plugins` and
``custom-pypto list`` say why. docs/discovery.md says how plugins are found and checked. Authors of
plugins import `custom_pypto_plugin` instead.
"""

from __future__ import annotations

import sys

try:
    import torch  # noqa: F401  # every module here needs it
except Exception as error:
    from custom_pypto.core.torch_import import explain_import_error

    raise explain_import_error(error) from error

from custom_pypto.core.api import (
    contract,
    cpu_isa,
    load_new,
    npu_kernels,
    ops,
    plugins,
    reference,
    samples,
)
from custom_pypto.core.errors import (
    PluginError,
    PluginFailedWarning,
    PluginRejectedWarning,
    PluginWarning,
)
from custom_pypto.core.kernel_queries import NpuKernelRecord
from custom_pypto.core.loader import start
from custom_pypto.core.records import OpRecord, PluginRecord
from custom_pypto.core.version import __version__

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

# Last, because plugins import the names above while they load. Python sets `custom_pypto.core` only
# when this import ends, but they may read it before.
vars(sys.modules["custom_pypto"])["core"] = sys.modules[__name__]
start()
