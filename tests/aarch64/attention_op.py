"""npu_sparse_flash_attention on emulated kernels: Python does the rest of the op's C++."""

from __future__ import annotations

import torch
from custom_pypto_sparse_attention import reference
from emulator import ELEMENTS, Argument, Emulated, offset, tensor_of
from torch import Tensor

ATTEND = 2


def attend(
    kernels: Emulated,
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    actual_seq_lengths_kv: Tensor,
    *,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
    return_softmax_lse: bool = False,
    heads_at_a_time: int = 1 << 62,
) -> tuple[Tensor, Tensor]:
    """Take the op's arguments, without a check, and return its results."""
    heads, latent = query.shape[-2:]
    tokens = int(query.shape[:-2].numel())
    out = torch.zeros(tokens, heads, latent, dtype=query.dtype)
    lse = torch.full((tokens, heads), -torch.inf)
    indices = sparse_indices.reshape(tokens, -1).long()
    message: list[Argument] = []
    rows = []
    sequences = reference.row_lengths(query, actual_seq_lengths_query, len(block_table))
    for row, (b, remaining) in enumerate(sequences):
        visible = int(actual_seq_lengths_kv[b]) - (remaining - 1) * (sparse_mode == 3)
        positions = indices[row][(indices[row] >= 0) & (indices[row] < visible)]
        if b < 0 or len(positions) == 0:
            continue
        rows.append(row)
        message += [row, *(_places(c, block_table[b], positions) for c in (kv_cache, kr_cache))]
    answers = kernels.call(
        ATTEND,
        [
            *(ELEMENTS[query.dtype], heads_at_a_time, heads, latent, query_rope.shape[-1], scale),
            *(_dense(query), _dense(query_rope), kv_cache, kr_cache),
            *(len(rows), *message),
        ],
        answers=2 * len(rows),
    )
    for row, part, logs in zip(rows, answers[::2], answers[1::2], strict=True):
        out[row] = tensor_of(part, out.dtype, heads, latent)
        lse[row] = tensor_of(logs, lse.dtype, heads)
    shape = query.shape[:-1]
    lse = lse.reshape(shape) if return_softmax_lse else torch.empty(0)
    return out.reshape(query.shape), lse


def _dense(tensor: Tensor) -> Tensor:
    """Copy the elements to memory without gaps."""
    return tensor.clone(memory_format=torch.contiguous_format)


def _places(cache: Tensor, blocks: Tensor, positions: Tensor) -> Tensor:
    """Return where the rows of these positions begin in the memory of `cache`, in elements."""
    block = blocks.long()[positions // cache.shape[1]]
    at = block * cache.stride(0) + positions % cache.shape[1] * cache.stride(1)
    return offset(cache) + at
