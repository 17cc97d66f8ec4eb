"""The ops that are tested on NPUs; a test holds that they are all there are."""

from __future__ import annotations

OPS = (
    "add_custom",
    "add_custom_backward",
    "npu_lightning_indexer_pto",
    "npu_sparse_attention_pto",
    "npu_mla_prolog",
    "npu_indexer_prolog",
    "npu_sparse_flash_attention",
)
