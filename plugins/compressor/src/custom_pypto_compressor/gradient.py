"""The derivative of npu_compressor_train: what its backward keeps and calls."""

from typing import Any

import torch
from torch import Tensor


def setup_context(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    """Keep arguments and results. Only the rows have a gradient."""
    x, wkv, wgate, _, ctx.cmp_ratio = inputs
    _, softmax_score, kv = output
    ctx.mark_non_differentiable(softmax_score, kv)
    lengths = [keyword_only_inputs[name] for name in ("cu_seqlens", "seqused")]
    ctx.save_for_backward(x, wkv, wgate, softmax_score, kv, *lengths)
    ctx.coff = keyword_only_inputs["coff"]


def backward(ctx: Any, d_cmp_kv: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    """The gradients of x, wkv, wgate and ape."""
    gradients: tuple[Tensor, ...] = torch.ops.custom_pypto.npu_compressor_backward(
        d_cmp_kv, *ctx.saved_tensors, None, ctx.cmp_ratio, ctx.coff
    )
    return *gradients, None
