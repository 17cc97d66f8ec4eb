"""Fractal NZ order: a weight in tiles of 16 columns, as an NPU's matrix units read it."""

from __future__ import annotations

from torch import Tensor

# Columns of a tile, for dtypes of 16 bits.
LANES = 16


def to_nz(weight: Tensor) -> Tensor:
    """Bring a weight into fractal NZ order, once and for all.

    Args:
        weight: a plain matrix [K, N], bfloat16 or float16; N is a multiple of 16.

    Returns:
        [N / 16, K, 16], contiguous: tile n holds the columns 16 n .. 16 n + 15. The ops take it
        wherever they take the matrix, by its rank.

    Raises:
        ValueError: the weight has another rank, dtype or number of columns.
    """
    if weight.dim() != 2 or weight.element_size() != 2 or not weight.is_floating_point():
        raise ValueError(
            "to_nz: argument 'weight' must be a 2-D matrix of bfloat16 or float16, got"
            f" {weight.dtype} {list(weight.shape)}"
        )
    depth, columns = weight.shape
    if columns % LANES != 0:
        raise ValueError(
            f"to_nz: argument 'weight' must have a multiple of {LANES} columns, got {columns}"
        )
    return weight.reshape(depth, columns // LANES, LANES).permute(1, 0, 2).contiguous()
