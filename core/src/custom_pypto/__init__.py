"""Custom ops for PyTorch on Ascend NPU and CPU, each op a wheel of its own.

Importing this package imports `custom_pypto.core`, which loads every installed op plugin; the ops
are then ``torch.ops.custom_pypto.<op>``.
"""

from __future__ import annotations

from custom_pypto_contract.fork_locks import LOADING

with LOADING.lock:
    from custom_pypto.core import __version__

    # The import is complete. Else a child that is forked now would wait for ever for its end.
    vars(__spec__)["_initializing"] = False

__all__ = ["__version__"]
