"""The ops of custom_pypto on MindSpore's tensors, in PyNative mode.

``custom_pypto_mindspore.ops.<op>`` is ``torch.ops.custom_pypto.<op>`` of every plugin that is
installed: the same arguments, results and errors, on the same memory.
"""

from __future__ import annotations

import custom_pypto.core  # noqa: F401  (its own errors come first)

from .requirements import check_layout, check_requirements, unknown_layout

check_requirements()

try:
    check_layout()
    from . import npu_ops, ops
except (AttributeError, ImportError) as error:
    raise unknown_layout(error) from error

__all__ = ["npu_ops", "ops"]
