"""Writing rows to a paged cache."""

from __future__ import annotations

from torch import Tensor


def write_rows(cache: Tensor, slots: Tensor, *parts: Tensor) -> None:
    """Write rows to a cache [blocks, block_size, size], whose rows are the parts side by side.

    A negative slot is padding. Its row goes to the first slot of block 0, which vLLM gives to no
    request: dropping the row would mean waiting for the values of ``slots``.
    """
    slots = slots.clamp(min=0)
    block_size = cache.shape[1]
    blocks, offsets = slots // block_size, slots % block_size
    begin = 0
    for part in parts:
        end = begin + part.shape[-1]
        cache[blocks, offsets, begin:end] = part
        begin = end
