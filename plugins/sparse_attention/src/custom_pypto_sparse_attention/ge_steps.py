"""Steps of the prologs as nodes of CANN's own operators, beside core's steps; imported only once
torchair is.

They are the steps of README.md with the roundings that stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from custom_pypto_blocks.ge_steps import as_float32, as_int32, reshape, size, transpose
from torchair import ge
from torchair.ge import attr

from .ops import RMS_EPSILON
from .weight_order import LANES, warn_of_plain_weights, weights_are_nz

if TYPE_CHECKING:
    from torchair.ge import Tensor


def like_tokens(x: Tensor, result: Tensor, *last: int) -> Tensor:
    """result [tokens, ..] with the leading dims of x [.., H], and `last` after them."""
    middle = [size(x, dim) for dim in range(1, x.rank - 1)]
    return reshape(result, -1, *middle, *last)


def is_declared_nz(weight: Tensor) -> bool:
    """Whether a weight is a matrix [K, N] whose bytes are declared to be in fractal NZ order."""
    return bool(weight.rank == 2 and weights_are_nz())


def is_plain_matrix(weight: Tensor) -> bool:
    """Whether a weight is a matrix [K, N] whose bytes lie as its shape says."""
    return bool(weight.rank == 2 and not weights_are_nz())


def plain_weight(weight: Tensor) -> Tensor:
    """[K, N] of a plain matrix or of its fractal NZ order, 3-D [N / 16, K, 16] or declared."""
    if is_plain_matrix(weight):
        return weight
    depth, columns = depth_of(weight), columns_of(weight)
    if weight.rank == 2:
        weight = reshape(weight, columns // LANES, depth, LANES)
    return reshape(transpose(weight, 1, 0, 2), depth, columns)


def nz_weight(weight: Tensor) -> Tensor:
    """[K, N] with its bytes in fractal NZ order, for which a plain one is rearranged."""
    if is_declared_nz(weight):
        return weight
    depth, columns = depth_of(weight), columns_of(weight)
    if weight.rank == 2:
        warn_of_plain_weights()
        weight = transpose(reshape(weight, depth, columns // LANES, LANES), 1, 0, 2)
    return reshape(weight, depth, columns)


def depth_of(weight: Tensor) -> int:
    """K of a weight that `plain_weight` takes."""
    return size(weight, weight.rank - 2)


def columns_of(weight: Tensor) -> int:
    """N of a weight that `plain_weight` takes."""
    return size(weight, 1) if weight.rank == 2 else size(weight, 0) * size(weight, 2)


def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
    """x [T, C] over its root mean square, times gamma [C]; in fp32."""
    normed, _ = ge.custom_op(
        "RmsNorm",
        inputs={"x": as_float32(x), "gamma": as_float32(gamma)},
        attrs={"epsilon": attr.Float(RMS_EPSILON)},
        outputs=["y", "rstd"],
    )
    return normed


def sort_descending(integers: Tensor) -> Tensor:
    """int32 integers with the largest of each row first."""
    values, _ = ge.custom_op(
        "Sort",
        inputs={"x": as_int32(integers)},
        attrs={"axis": attr.Int(-1), "descending": attr.Bool(True), "stable": attr.Bool(False)},
        outputs=["y1", "y2"],
    )
    return values
