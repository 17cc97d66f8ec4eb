"""The ops of which engines take the first result alone: as ``torch.ops.custom`` has them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import attention


def npu_lightning_indexer(*args: Any, **kwargs: Any) -> Tensor:
    """Give the positions of the op npu_lightning_indexer; the same arguments."""
    positions: Tensor = torch.ops.custom_pypto.npu_lightning_indexer(*args, **kwargs)[0]
    return positions


def npu_sparse_flash_attention(*args: Any, **kwargs: Any) -> Tensor:
    """Give the output of `custom_pypto_serving.npu_sparse_flash_attention`; the same arguments."""
    return attention.npu_sparse_flash_attention(*args, **kwargs)[0]
