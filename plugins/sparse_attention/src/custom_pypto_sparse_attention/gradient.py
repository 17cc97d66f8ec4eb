"""The derivative of npu_sparse_flash_attention: what its backward keeps and calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def setup_context(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    """Keep arguments and results."""
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, keyword_only_inputs["actual_seq_lengths_query"], *output)
    ctx.options = {k: keyword_only_inputs[k] for k in ("scale", "sparse_mode", "layout_kv")}
    ctx.has_lse = keyword_only_inputs["return_softmax_lse"]
    if not ctx.has_lse:
        ctx.mark_non_differentiable(output[1])


def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    """The gradients of query, query_rope, kv_cache and kr_cache."""
    *inputs, lengths_query, out, lse = ctx.saved_tensors
    query, query_rope, kv_cache, kr_cache, indices, block_table, lengths_kv = inputs
    options, ops = ctx.options, torch.ops.custom_pypto
    if not ctx.has_lse:
        _, lse = ops.npu_sparse_flash_attention(
            *inputs, actual_seq_lengths_query=lengths_query, return_softmax_lse=True, **options
        )
    # As CANN wants the two: [B, 1, S1, N1] or [1, T, N1].
    softmax_max = lse.unsqueeze(query.dim() - 3)
    d_query, d_key, d_value, d_query_rope, d_key_rope = ops.npu_sparse_flash_attention_grad(
        query,
        kv_cache,
        kv_cache,
        indices,
        torch.zeros_like(out) if d_out is None else d_out,
        out,
        softmax_max,
        torch.ones_like(softmax_max),
        options["scale"],
        1,
        query_rope,
        kr_cache,
        lengths_query,
        lengths_kv,
        layout="BSND" if query.dim() == 4 else "TND",
        sparse_mode=options["sparse_mode"],
        attention_mode=2,
        d_lse=d_lse if ctx.has_lse else None,
        block_table=block_table,
        paged=options["layout_kv"] == "PA_BSND",
    )
    return d_query, d_query_rope, d_key + d_value, d_key_rope, None, None, None
