"""The ops of custom_pypto on MindSpore's tensors, in PyNative mode.

``custom_pypto_mindspore.ops.<op>`` is ``torch.ops.custom_pypto.<op>`` of every plugin that is
installed: the same arguments, results and errors, on the same memory.
"""

from __future__ import annotations

from .requirements import check_requirements

check_requirements()

from . import npu_ops, ops  # noqa: E402  (they import mindspore)

__all__ = ["npu_ops", "ops"]
