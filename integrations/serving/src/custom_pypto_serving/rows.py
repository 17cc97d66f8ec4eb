"""DeepSeek-V4's compressor with norm and rotation, on npu_compressor."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import require


def compressor(
    x: Tensor,
    wkv: Tensor,
    wgate: Tensor,
    state_cache: Tensor,
    ape: Tensor,
    norm_weight: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    state_block_table: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    seqused: Tensor | None = None,
    start_pos: Tensor | None = None,
    rope_head_dim: int = 64,
    cmp_ratio: int = 4,
    coff: int = 1,
    norm_eps: float = 1e-6,
    rotary_mode: int = 1,
    cache_mode: int = 1,
) -> Tensor:
    """Compress as the op of this name of vllm-ascend and sgl-kernel-npu.

    Args:
        rope_sin, rope_cos: [.., rope_head_dim], as many rows as the result.
        rotary_mode: 1: channels i and rope_head_dim / 2 + i are a pair; 2: 2i and 2i + 1.
        cache_mode: 1; the table of 2 is another one in each package.

    Raises:
        ValueError: the op does not support an argument.
    """
    same = "the shape of 'rope_cos'"
    require("compressor", "rope_sin's shape", [*rope_sin.shape], [*rope_cos.shape], same)
    require("compressor", "rope_head_dim", rope_head_dim, rope_cos.shape[-1], "rope_cos's columns")
    tokens = x.shape[-2]
    count = (tokens + cmp_ratio - 1) // cmp_ratio
    if cu_seqlens is not None:
        count = min(tokens, tokens // cmp_ratio + cu_seqlens.shape[0] - 1)
    shape = [*x.shape[:-2], count, rope_head_dim]
    require("compressor", "rope_cos's shape", [*rope_cos.shape], shape, "one row for each result")
    for name, each in (("rope_cos", rope_cos), ("norm_weight", norm_weight)):
        require("compressor", f"{name}'s device", each.device, x.device, "x is there")
        if not each.is_floating_point():
            require("compressor", f"{name}'s dtype", each.dtype, "one of floats", "convert it")
    require("compressor", "rope_head_dim % 2", rope_head_dim % 2, 0, "channels turn in pairs")
    size = [ape.shape[-1] // coff]
    require("compressor", "norm_weight's shape", [*norm_weight.shape], size, "ape's columns / coff")
    require("compressor", "cache_mode", cache_mode, 1, "call npu_compressor for rings")
    if rotary_mode != 2:
        require("compressor", "rotary_mode", rotary_mode, 1, "2 is supported, too")
    options = {"state_block_table": state_block_table, "cu_seqlens": cu_seqlens}
    options |= {"seqused": seqused, "start_pos": start_pos}
    rows = torch.ops.custom_pypto.npu_compressor(
        x, wkv, wgate, state_cache, ape, cmp_ratio, coff=coff, **options
    )
    # An absent plugin is named by the op above.
    from custom_pypto_compressor import norm_and_rotate

    inputs = rows, norm_weight, rope_cos, rope_sin
    return norm_and_rotate(*inputs, eps=norm_eps, interleaved=rotary_mode == 2)
