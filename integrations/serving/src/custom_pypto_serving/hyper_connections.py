"""DeepSeek-V4's hyper-connections by vllm-ascend's signatures, on the ops npu_mhc_*."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import require


def npu_hc_pre(
    x: Tensor,
    hc_fn: Tensor,
    hc_scale: Tensor,
    hc_base: Tensor,
    hc_mult: int = 4,
    hc_sinkhorn_iters: int = 20,
    norm_eps: float = 1e-6,
    hc_eps: float = 1e-6,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a layer's input, and what `npu_hc_post` adds its output by, as vllm-ascend's op.

    cann-recipes' op of this name takes the last four arguments by keyword.

    Raises:
        ValueError: `hc_mult` is not the number of streams of `x`.
    """
    require("npu_hc_pre", "hc_mult", hc_mult, x.shape[-2], "the streams of 'x'")
    ops, eps = torch.ops.custom_pypto, {"norm_eps": norm_eps, "hc_eps": hc_eps}
    y, post, mixing, *_ = ops.npu_mhc_pre(x, hc_fn, hc_scale, hc_base, **eps)
    return y, post, ops.npu_mhc_sinkhorn(mixing, eps=hc_eps, num_iters=hc_sinkhorn_iters)[0]


def npu_hc_post(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """Return the streams after a layer, of which `x` is the output, as vllm-ascend's op."""
    # Theirs takes coefficients of 16 bits, too.
    wide = [each.to(torch.promote_types(each.dtype, torch.float32)) for each in (comb, post)]
    streams: Tensor = torch.ops.custom_pypto.npu_mhc_post(residual, wide[0], x, wide[1])
    return streams
