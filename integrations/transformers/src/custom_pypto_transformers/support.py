"""The supported models (by name), dtypes and sizes; on an NPU a call of the op decides."""

from __future__ import annotations

import functools
from typing import Any

import torch
from custom_pypto_sparse_attention.ops import NPU_BLOCK_MULTIPLE
from torch import Tensor

from .rows import Compressed, attend_to_rows

NAME = "custom_pypto"
# For messages; served.py has the classes.
SERVED = (
    "DeepSeek-V3.2, DeepSeek-V4, GLM-5, GLM-5.3, A.X-K2, HY-V4, Mistral Large 4 and Dots3, switched"
    " by set_attn_implementation or made with it; for any other model set 'sdpa' or 'eager'"
)

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def refusal_of_autocast(device: torch.device) -> str | None:
    """Why no op applies while torch.autocast chooses dtypes; None if it does not."""
    if torch.is_autocast_enabled(device.type):
        return "the dtypes differ under autocast; load the model in the dtype that you want"
    return None


def refusal_of(
    call: str, device: torch.device, dtype: torch.dtype, *sizes: int | None
) -> str | None:
    """Why a call of an op is refused now for these sizes on this device; None if it is not.

    Args:
        call: one of the functions below, without its `_call_`.
        sizes: its arguments.
    """
    return refusal_of_autocast(device) or _refusal(call, device, dtype, *sizes)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _refusal(*call: Any) -> str | None:
    # torch.compile traces through a cache.
    return _refusal_once(*call)


@functools.cache
def _refusal_once(
    call: str, device: torch.device, dtype: torch.dtype, *sizes: int | None
) -> str | None:
    if device.type == "cpu":
        if dtype in _DTYPES:
            return None
        return f"the model is {dtype}; the ops support bfloat16, float16 and float32"
    try:
        globals()[f"_call_{call}"](torch.empty(0, dtype=dtype, device=device), *sizes)
    except RuntimeError as error:
        return str(error)
    return None


def _call_attention(like: Tensor, heads: int, latent: int, rope: int, want_lse: bool) -> None:
    one = like.new_ones(1, dtype=torch.int32)
    torch.ops.custom_pypto.npu_sparse_flash_attention(
        like.new_zeros(1, 1, heads, latent),
        like.new_zeros(1, 1, heads, rope),
        like.new_zeros(1, NPU_BLOCK_MULTIPLE, 1, latent),
        like.new_zeros(1, NPU_BLOCK_MULTIPLE, 1, rope),
        one.view(1, 1, 1, 1) - 1,
        one.view(1, 1) - 1,
        one,
        scale=1.0,
        sparse_mode=0,
        return_softmax_lse=want_lse,
    )


def _call_rows(
    like: Tensor, heads: int, size: int, window: int | None = None, ratio: int = 0, count: int = 0
) -> None:
    """Attend to a window or, where it is None, to listed rows, and to `count` compressed rows.

    A ratio of 0 is none of them, a count of 0 all.
    """
    one = like.new_ones(1, dtype=torch.int32)
    picked = one.new_zeros(1, 1, count) if count else None
    rows = like.new_zeros(1, NPU_BLOCK_MULTIPLE, size)
    attend_to_rows(
        like.new_zeros(1, 1, heads, size),
        rows,
        1.0,
        indices=one.view(1, 1, 1) - 1 if window is None else None,
        window=window,
        compressed=Compressed(rows, ratio, one * ratio, picked) if ratio else None,
    )


def _call_indexer(like: Tensor, heads: int, size: int, count: int) -> None:
    torch.ops.custom_pypto.npu_lightning_indexer_pto(
        like.new_zeros(1, 1, heads, size),
        like.new_zeros(1, NPU_BLOCK_MULTIPLE, 1, size),
        like.new_zeros(1, 1, heads, dtype=torch.float32),
        layout_key="BSND",
        sparse_count=count,
    )


def _call_selection(like: Tensor, heads: int, size: int, count: int) -> None:
    torch.ops.custom_pypto.npu_lightning_indexer_v2(
        like.new_zeros(1, 1, heads, size),
        like.new_zeros(1, NPU_BLOCK_MULTIPLE, 1, size),
        like.new_zeros(1, 1, heads, dtype=torch.float32),
        count,
    )


def _call_streams(like: Tensor, count: int, size: int) -> None:
    streams, width = like.new_zeros(1, 1, count, size), count * (count + 2)
    weights = streams.float().new_zeros(width, count * size)
    ops, alpha, bias = torch.ops.custom_pypto, weights[0, :3].clone(), weights[:, 0].clone()
    inputs, post, mixed, *_ = ops.npu_mhc_pre(streams, weights, alpha, bias)
    ops.npu_mhc_post(streams, ops.npu_mhc_sinkhorn(mixed)[0], inputs, post)
