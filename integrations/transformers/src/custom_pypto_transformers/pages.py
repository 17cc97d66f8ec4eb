"""The rows of a dense cache as the pages that npu_sparse_flash_attention reads."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from custom_pypto_sparse_attention.ops import NPU_BLOCK_LIMIT, NPU_BLOCK_MULTIPLE
from torch import Tensor
from torch.nn.functional import pad


class Pages(NamedTuple):
    """Two caches [blocks, block_size, 1, L or R].

    The table [B, pages of a row] and the lengths [B] of the rows are int32.
    """

    latents: Tensor
    ropes: Tensor
    table: Tensor
    lengths: Tensor


def as_pages(latents: Tensor, ropes: Tensor) -> Pages:
    """View cache rows [B, 1, T, L] and [B, 1, T, R] as pages; on a CPU no element is copied.

    On an NPU none is copied if rows are a multiple of 16 tokens apart, as in GrowingCache and in
    static caches of such a length.
    """
    batch, _, keys, _ = latents.shape
    lengths = torch.full((batch,), keys, dtype=torch.int32, device=latents.device)
    if latents.device.type == "cpu":
        table = torch.arange(batch, dtype=torch.int32, device=latents.device)[:, None]
        return Pages(latents.transpose(1, 2), ropes.transpose(1, 2), table, lengths)
    pitch = row_pitch(latents)
    if pitch is None or pitch % NPU_BLOCK_MULTIPLE != 0 or pitch != row_pitch(ropes):
        padding = (0, 0, 0, -keys % NPU_BLOCK_MULTIPLE)
        latents, ropes = pad(latents, padding).contiguous(), pad(ropes, padding).contiguous()
        pitch = latents.shape[2]
    size = math.gcd(pitch, NPU_BLOCK_LIMIT)
    row = torch.arange(pitch // size, dtype=torch.int32, device=latents.device)
    first = torch.arange(batch, dtype=torch.int32, device=latents.device) * (pitch // size)
    # Pages after the last key of a row are in the cache's memory and are never read.
    table = first[:, None] + row
    return Pages(_cut(latents, pitch, size), _cut(ropes, pitch, size), table, lengths)


def row_pitch(rows: Tensor) -> int | None:
    """Return the distance in tokens between the rows of [B, .., T, D].

    None if the rows are not views of one [B, pitch, D], or while torch.compile traces.
    """
    if torch.compiler.is_compiling():
        return None
    batch, size = rows.shape[0], rows.shape[-1]
    pitch = rows.stride(0) // size
    held = rows.untyped_storage().nbytes() // rows.element_size() - rows.storage_offset()
    is_whole = rows.stride()[-2:] == (size, 1) and rows.stride(0) == pitch * size
    # The stride of a single or expanded row may be any number.
    fits = pitch >= rows.shape[-2] and held >= batch * pitch * size
    return pitch if is_whole and fits else None


def _cut(rows: Tensor, pitch: int, page: int) -> Tensor:
    batch, _, _, size = rows.shape
    return rows.as_strided((batch * pitch // page, page, 1, size), (page * size, size, size, 1))
