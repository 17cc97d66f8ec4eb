"""The ops by the names and signatures that serving engines call.

A call of ``torch_npu.<op>`` or ``torch.ops._C_ascend.<op>`` becomes ``custom_pypto_serving.<op>``.
A call of ``torch.ops.custom.<op>`` becomes ``custom_pypto_serving.custom.<op>``. So does a call
that expects only the first result. A name that is not defined here is the op of that name: its
own signature is the published one.
"""

from __future__ import annotations

from typing import Any

import custom_pypto.core  # noqa: F401  (makes the ops)
import torch

from . import custom
from .attention import npu_sparse_flash_attention
from .hyper_connections import npu_hc_post, npu_hc_pre
from .indexer import (
    lightning_indexer,
    npu_lightning_indexer_quant,
    npu_quant_lightning_indexer,
    npu_vllm_quant_lightning_indexer,
)
from .rows import compressor
from .shared_kv import (
    npu_sparse_attn_sharedkv,
    npu_sparse_attn_sharedkv_metadata,
    sparse_attn_sharedkv,
)
from .step import advance_step_flashattn_ascendc, npu_advance_step_flashattn

__all__ = [
    "advance_step_flashattn_ascendc",
    "compressor",
    "custom",
    "lightning_indexer",
    "npu_advance_step_flashattn",
    "npu_hc_post",
    "npu_hc_pre",
    "npu_lightning_indexer_quant",
    "npu_quant_lightning_indexer",
    "npu_sparse_attn_sharedkv",
    "npu_sparse_attn_sharedkv_metadata",
    "npu_sparse_flash_attention",
    "npu_vllm_quant_lightning_indexer",
    "sparse_attn_sharedkv",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch.ops.custom_pypto, name)
