"""Custom ops for PyTorch on Ascend NPU and CPU, each op a wheel of its own.

Importing this package imports `custom_pypto.core`, which loads every installed op plugin; the ops
are then ``torch.ops.custom_pypto.<op>``.
"""

from __future__ import annotations

from custom_pypto.core import __version__

__all__ = ["__version__"]
