"""The rows of a dense cache as the pages that npu_sparse_flash_attention reads."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

# CANN's kernel takes pages of a multiple of 16 tokens, up to 1024.
NPU_PAGE_UNIT = 16
NPU_LARGEST_PAGE = 1024


class Pages(NamedTuple):
    """Two caches [blocks, block_size, 1, L or R] and the table [B, pages of a row], int32."""

    latents: Tensor
    ropes: Tensor
    table: Tensor


def as_pages(latents: Tensor, ropes: Tensor) -> Pages:
    """Cache rows [B, 1, T, L] and [B, 1, T, R] as pages; on a CPU no element is copied.

    On an NPU none is copied where the rows lie a multiple of 16 tokens apart, as GrowingCache and
    static caches of such a length lay them.
    """
    batch, _, keys, _ = latents.shape
    if latents.device.type == "cpu":
        table = torch.arange(batch, dtype=torch.int32)[:, None]
        return Pages(latents.transpose(1, 2), ropes.transpose(1, 2), table)
    apart = _tokens_apart(latents)
    if apart is None or apart != _tokens_apart(ropes):
        padding = (0, 0, 0, -keys % NPU_PAGE_UNIT)
        latents, ropes = pad(latents, padding).contiguous(), pad(ropes, padding).contiguous()
        apart = latents.shape[2]
    size = math.gcd(apart, NPU_LARGEST_PAGE)
    row = torch.arange(apart // size, dtype=torch.int32, device=latents.device)
    first = torch.arange(batch, dtype=torch.int32, device=latents.device) * (apart // size)
    # Pages behind the last key of a row are in the cache's memory, and are never read.
    return Pages(_cut(latents, apart, size), _cut(ropes, apart, size), first[:, None] + row)


def _tokens_apart(rows: Tensor) -> int | None:
    """How many tokens lie from one row's start to the next one's; None if these are no pages."""
    batch, _, _, size = rows.shape
    apart = rows.stride(0) // size
    is_whole = rows.stride()[2:] == (size, 1) and rows.stride(0) == apart * size
    held = rows.untyped_storage().nbytes() // rows.element_size() - rows.storage_offset()
    if not is_whole or apart % NPU_PAGE_UNIT != 0 or held < batch * apart * size:
        return None
    return apart


def _cut(rows: Tensor, apart: int, page: int) -> Tensor:
    batch, _, _, size = rows.shape
    return rows.as_strided((batch * apart // page, page, 1, size), (page * size, size, size, 1))
