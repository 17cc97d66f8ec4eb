"""What is supported: models by name, dtypes, and sizes; on an NPU a call of the op decides."""

from __future__ import annotations

import functools

import torch

from .pages import NPU_PAGE_UNIT

NAME = "custom_pypto"
# For messages; served.py has the classes.
SERVED = "DeepSeek-V3.2, GLM-5 and A.X-K2"

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def refusal_of_autocast(device: torch.device) -> str | None:
    """Why no op applies while torch.autocast chooses dtypes; None if it does not."""
    if torch.is_autocast_enabled(device.type):
        return "the dtypes differ under autocast; load the model in the dtype that you want"
    return None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def refusal_of_attention(
    device: torch.device, dtype: torch.dtype, heads: int, latent: int, rope: int
) -> str | None:
    """Why npu_sparse_flash_attention refuses these sizes on this device; None if it does not."""
    if device.type == "cpu":
        return _refusal_of_dtype(dtype)
    return _probe_attention(device, dtype, heads, latent, rope)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def refusal_of_indexer(
    device: torch.device, dtype: torch.dtype, heads: int, size: int, count: int
) -> str | None:
    """Why npu_lightning_indexer_pto refuses these sizes on this device; None if it does not."""
    if device.type == "cpu":
        return _refusal_of_dtype(dtype)
    return _probe_indexer(device, dtype, heads, size, count)


def _refusal_of_dtype(dtype: torch.dtype) -> str | None:
    if dtype in _DTYPES:
        return None
    return f"the model is {dtype}; the ops support bfloat16, float16 and float32"


@functools.cache
def _probe_attention(
    device: torch.device, dtype: torch.dtype, heads: int, latent: int, rope: int
) -> str | None:
    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    one = torch.ones(1, dtype=torch.int32, device=device)
    try:
        torch.ops.custom_pypto.npu_sparse_flash_attention(
            zeros(1, 1, heads, latent),
            zeros(1, 1, heads, rope),
            zeros(1, NPU_PAGE_UNIT, 1, latent),
            zeros(1, NPU_PAGE_UNIT, 1, rope),
            one.view(1, 1, 1, 1) - 1,
            one.view(1, 1) - 1,
            one,
            scale=1.0,
            sparse_mode=0,
        )
    except RuntimeError as error:
        return str(error)
    return None


@functools.cache
def _probe_indexer(
    device: torch.device, dtype: torch.dtype, heads: int, size: int, count: int
) -> str | None:
    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    try:
        torch.ops.custom_pypto.npu_lightning_indexer_pto(
            zeros(1, 1, heads, size),
            zeros(1, NPU_PAGE_UNIT, 1, size),
            zeros(1, 1, heads).float(),
            layout_key="BSND",
            sparse_count=count,
        )
    except RuntimeError as error:
        return str(error)
    return None
