"""The ops of custom_pypto on MindSpore's tensors, in PyNative mode.

``custom_pypto_mindspore.ops.<op>`` is ``torch.ops.custom_pypto.<op>`` of every plugin that is
installed: the same arguments, results and errors, on the same memory.
"""

from __future__ import annotations

from importlib.metadata import version

import custom_pypto.core  # noqa: F401  (its own errors come first)

from .requirements import MINIMUM, check_layout, check_requirements

check_requirements()

try:
    check_layout()
    from . import npu_ops, ops
except (AttributeError, ImportError) as error:
    raise ImportError(
        f"custom_pypto_mindspore: mindspore {version('mindspore')} is laid out differently from"
        f" {MINIMUM}, with which this was tested ({error}): pip install 'mindspore=={MINIMUM}'"
    ) from error

__all__ = ["npu_ops", "ops"]
