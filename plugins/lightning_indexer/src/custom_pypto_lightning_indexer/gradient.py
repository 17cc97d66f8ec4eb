"""The derivative of npu_lightning_indexer: that of its values; positions have none."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_KEPT = ("actual_seq_lengths_query", "actual_seq_lengths_key")


def setup_context(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    """Keep arguments and positions."""
    indices, values = output
    ctx.mark_non_differentiable(indices, *([] if keyword_only_inputs["return_value"] else [values]))
    ctx.save_for_backward(*inputs, indices, *(keyword_only_inputs[name] for name in _KEPT))
    ctx.layout = keyword_only_inputs["layout_query"]
    ctx.sparse_mode = keyword_only_inputs["sparse_mode"]


def backward(ctx: Any, _indices: None, dy: Tensor) -> tuple[Tensor, ...]:
    """The gradients of query, key and weights."""
    query, key, weights, indices, *lengths = ctx.saved_tensors
    gradients: tuple[Tensor, ...] = torch.ops.custom_pypto.npu_lightning_indexer_grad(
        query, key, dy, indices, weights, *lengths, layout=ctx.layout, sparse_mode=ctx.sparse_mode
    )
    return gradients
