"""Ops that return only the first result, as those of ``torch.ops.custom``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import attention


def npu_lightning_indexer(*args: Any, **kwargs: Any) -> Tensor:
    """Return only the positions of the op npu_lightning_indexer."""
    positions: Tensor = torch.ops.custom_pypto.npu_lightning_indexer(*args, **kwargs)[0]
    return positions


def npu_sparse_flash_attention(*args: Any, **kwargs: Any) -> Tensor:
    """Return only the output of `custom_pypto_serving.npu_sparse_flash_attention`."""
    return attention.npu_sparse_flash_attention(*args, **kwargs)[0]
