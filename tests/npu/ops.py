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

COMPOSED = ("add_custom_backward", "npu_mla_prolog", "npu_indexer_prolog")
"""Ops that call torch's own for these samples, and launch nothing themselves."""
BY_PACKAGES = ("add_custom", "npu_lightning_indexer_pto", "npu_sparse_attention_pto")
"""Ops that an opp package may have kernels of its own for; the others take CANN's, if any."""
KERNELS_OF_OPS = [
    (kernels, op)
    for op in OPS
    for kernels in (("custom", "stock") if op in BY_PACKAGES else ("stock",))
]
"""For each op, the kinds of machine on which compilers, which take long, are tested with it: those
that differ for it. What is quick is tested on every one."""
