"""The ops by the names and signatures that serving engines call.

A call of ``torch_npu.<op>`` or ``torch.ops._C_ascend.<op>`` becomes ``custom_pypto_serving.<op>``.
A call that returns only the first result, as ``torch.ops.custom.<op>`` does, becomes
``custom_pypto_serving.custom.<op>``. ``advance_step_flashattn_ascendc`` is `adv_step_flash` of
custom_pypto_advance_step. Any other name is the op of that name: its own signature is the published
one.
"""

from __future__ import annotations

from typing import Any

import custom_pypto.core  # noqa: F401  (makes the ops)
import torch

from . import custom
from .attention import npu_sparse_flash_attention
from .indexer import lightning_indexer, npu_lightning_indexer_quant
from .step import npu_advance_step_flashattn

__all__ = [
    "custom",
    "lightning_indexer",
    "npu_advance_step_flashattn",
    "npu_lightning_indexer_quant",
    "npu_sparse_flash_attention",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    ops = torch.ops.custom_pypto
    if name != "advance_step_flashattn_ascendc":
        return getattr(ops, name)
    _ = ops.npu_advance_step_flashattn  # Raises, and says what to do, if the op is not installed.
    from custom_pypto_advance_step import adv_step_flash

    return adv_step_flash
