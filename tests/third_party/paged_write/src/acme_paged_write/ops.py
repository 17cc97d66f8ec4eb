"""Written by custom_pypto_build: the ops of the plugin 'acme_paged_write' as functions, and its constants.

The first call of one loads the installed plugins.
"""

# The signatures are all there is to the functions.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from custom_pypto_plugin import op_function

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["paged_write", "paged_write_int8"]


@op_function("paged_write")
def paged_write(
    rows: Tensor,
    cache: Tensor,
    slots: Tensor,
) -> None:
    """paged_write(Tensor rows, Tensor(a!) cache, Tensor slots) -> ()

    writes the rows of new tokens into their slots of a paged cache

    In PyTorch: [cache.index_put_((s // cache.shape[1], s % cache.shape[1]), rows[slots >= 0]) for s in [slots[slots >= 0].long()]] and None

    Arguments
      rows   [T, N, D], float16, bfloat16 or float32
      cache  [blocks, block_size, N, D], dtype of rows; written in place
      slots  [T], int32 or int64

    Sizes
      T  the number of tokens
      N  the number of heads
      D  the size of a head
    """


@op_function("paged_write_int8")
def paged_write_int8(
    rows: Tensor,
    cache: Tensor,
    scales: Tensor,
    slots: Tensor,
) -> None:
    """paged_write_int8(Tensor rows, Tensor(a!) cache, Tensor(b!) scales, Tensor slots) -> ()

    the same as int8, with a scale for each head of each token: max|row| / 127

    In PyTorch: [(cache.index_put_((s // cache.shape[1], s % cache.shape[1]), torch.where(scale > 0, x / scale, 0.0).round().to(torch.int8)), scales.index_put_((s // cache.shape[1], s % cache.shape[1]), scale.squeeze(-1))) for s in [slots[slots >= 0].long()] for x in [rows[slots >= 0].float()] for scale in [x.abs().amax(-1, True) / 127]] and None

    Arguments
      rows    [T, N, D], float16, bfloat16 or float32
      cache   [blocks, block_size, N, D], int8; written in place
      scales  [blocks, block_size, N], float32; written in place
      slots   [T], int32 or int64

    Sizes
      T  the number of tokens
      N  the number of heads
      D  the size of a head
    """
