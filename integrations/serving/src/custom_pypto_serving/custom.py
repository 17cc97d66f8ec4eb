"""The ops of which engines take the first result alone: as ``torch.ops.custom`` has them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from . import attention, indexer


def npu_lightning_indexer(*args: Any, **kwargs: Any) -> Tensor:
    """Give the positions of `custom_pypto_serving.npu_lightning_indexer`; the same arguments."""
    return indexer.npu_lightning_indexer(*args, **kwargs)[0]


def npu_sparse_flash_attention(*args: Any, **kwargs: Any) -> Tensor:
    """Give the output of `custom_pypto_serving.npu_sparse_flash_attention`; the same arguments."""
    return attention.npu_sparse_flash_attention(*args, **kwargs)[0]
