"""Steps of the prologs as nodes of CANN's own operators; imported only once torchair is.

They are the steps of README.md with the roundings that stand there, for machines whose GE registers
no operator that takes all of them at once. Sizes other than the number of tokens become constants
of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchair import ge
from torchair.ge import attr

from .constants import LAYER_NORM_EPSILON, RMS_EPSILON
from .nz import LANES
from .weight_order import warn_of_plain_weights, weights_are_nz

if TYPE_CHECKING:
    from torchair.ge import Tensor

_FLOAT = ge.DataType.DT_FLOAT
_LONG = ge.DataType.DT_INT64


def size(tensor: Tensor, dim: int) -> int:
    """A size of an argument; a symbolic one is fixed, and guarded."""
    return int(tensor.symsize[dim])


def cast(x: Tensor, dtype: int) -> Tensor:
    """x in a dtype of GE."""
    return ge.Cast(x, dst_type=dtype)


def wide(x: Tensor) -> Tensor:
    """x in fp32."""
    return cast(x, _FLOAT)


def reshaped(x: Tensor, *sizes: int) -> Tensor:
    """x in another shape; one size may be -1."""
    return _node("Reshape", x=x, shape=_integers(sizes))


def rows(x: Tensor) -> Tensor:
    """[tokens, size] of an argument x [.., size]."""
    return reshaped(x, -1, size(x, -1))


def like_tokens(x: Tensor, result: Tensor, *last: int) -> Tensor:
    """result [tokens, ..] with the leading dims of x [.., H], and `last` after them."""
    middle = [size(x, dim) for dim in range(1, x.rank - 1)]
    return reshaped(result, -1, *middle, *last)


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
        weight = reshaped(weight, columns // LANES, depth, LANES)
    return reshaped(transposed(weight, 1, 0, 2), depth, columns)


def nz_weight(weight: Tensor) -> Tensor:
    """[K, N] with its bytes in fractal NZ order, for which a plain one is rearranged."""
    if is_declared_nz(weight):
        return weight
    depth, columns = depth_of(weight), columns_of(weight)
    if weight.rank == 2:
        warn_of_plain_weights()
        weight = transposed(reshaped(weight, depth, columns // LANES, LANES), 1, 0, 2)
    return reshaped(weight, depth, columns)


def depth_of(weight: Tensor) -> int:
    """K of a weight that `plain_weight` takes."""
    return size(weight, weight.rank - 2)


def columns_of(weight: Tensor) -> int:
    """N of a weight that `plain_weight` takes."""
    return size(weight, 1) if weight.rank == 2 else size(weight, 0) * size(weight, 2)


def transposed(x: Tensor, *dims: int) -> Tensor:
    """x with its dims in another order."""
    return _node("Transpose", x=x, perm=_integers(dims))


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x [T, K] @ weight [K, N], in their dtype."""
    return ge.custom_op(
        "MatMulV2",
        inputs={"x1": x, "x2": weight},
        attrs={"transpose_x1": attr.Bool(False), "transpose_x2": attr.Bool(False)},
        outputs=["y"],
    )


def batched_product(x: Tensor, weight: Tensor) -> Tensor:
    """x [B, T, K] @ weight [B, K, N], in their dtype."""
    return ge.custom_op(
        "BatchMatMulV2",
        inputs={"x1": x, "x2": weight},
        attrs={"adj_x1": attr.Bool(False), "adj_x2": attr.Bool(False)},
        outputs=["y"],
    )


def columns(x: Tensor, rank: int, begin: int, end: int, step: int = 1) -> Tensor:
    """x [.., begin:end:step], where x has `rank` dims."""
    others = [0] * (rank - 1)
    every = 2 ** (rank - 1) - 1
    return ge.custom_op(
        "StridedSlice",
        inputs={
            "x": x,
            "begin": _integers([*others, begin]),
            "end": _integers([*others, end]),
            "strides": _integers([*[1] * (rank - 1), step]),
        },
        attrs={
            "begin_mask": attr.Int(every),
            "end_mask": attr.Int(every),
            "ellipsis_mask": attr.Int(0),
            "new_axis_mask": attr.Int(0),
            "shrink_axis_mask": attr.Int(0),
        },
        outputs=["y"],
    )


def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
    """x [T, C] over its root mean square, times gamma [C]; in fp32."""
    normed, _ = ge.custom_op(
        "RmsNorm",
        inputs={"x": wide(x), "gamma": wide(gamma)},
        attrs={"epsilon": attr.Float(RMS_EPSILON)},
        outputs=["y", "rstd"],
    )
    return normed


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """x [T, C] in fp32 with mean 0 and variance 1, times gamma [C], plus beta [C]; in fp32."""
    normed, _, _ = ge.custom_op(
        "LayerNormV4",
        inputs={
            "x": x,
            "normalized_shape": _integers([size(gamma, 0)]),
            "gamma": wide(gamma),
            "beta": wide(beta),
        },
        attrs={"epsilon": attr.Float(LAYER_NORM_EPSILON)},
        outputs=["y", "mean", "rstd"],
    )
    return normed


def rope(x: Tensor, rotated: int, sin: Tensor, cos: Tensor, dtype: int) -> Tensor:
    """x [T, heads, rotated] rotated by sin and cos [T, rotated], in fp32; then in `dtype`."""
    x = wide(x)
    even, odd = (columns(x, 3, first, rotated, 2) for first in (0, 1))
    cos, sin = (wide(reshaped(angle, -1, 1, rotated)) for angle in (cos, sin))
    straight = _node("Mul", x1=_concatenated([even, odd]), x2=cos)
    across = _node("Mul", x1=_concatenated([_node("Neg", x=odd), even]), x2=sin)
    return cast(_node("Add", x1=straight, x2=across), dtype)


def rope_first(
    x: Tensor, head_size: int, rotated: int, sin: Tensor, cos: Tensor, dtype: int
) -> Tensor:
    """`rope` on the first `rotated` dims of x [T, heads, head_size]."""
    front = rope(columns(x, 3, 0, rotated), rotated, sin, cos, dtype)
    if rotated == head_size:
        return front
    return _concatenated([front, columns(x, 3, rotated, head_size)])


def sorted_down(x: Tensor) -> Tensor:
    """x with the largest numbers of each row first."""
    values, _ = ge.custom_op(
        "Sort",
        inputs={"x": x},
        attrs={"axis": attr.Int(-1), "descending": attr.Bool(True), "stable": attr.Bool(False)},
        outputs=["y1", "y2"],
    )
    return values


def scatter(cache: Tensor, slots: Tensor, new: Tensor, *, after: Tensor | None = None) -> Tensor:
    """Write new [T, D] into cache [blocks, block_size, 1, D] at slots; returns the cache.

    The node that writes is the last one made. It runs once `after` is there.
    """
    block_size, depth = size(cache, 1), size(cache, 3)
    slot = cast(slots, _LONG)
    if after is not None:
        slot = ge.Clone(slot, dependencies=[after])
    slot = reshaped(slot, -1, 1)
    length = ge.Const(block_size, dtype=_LONG)
    where = _concatenated(
        [_node("FloorDiv", x1=slot, x2=length), _node("FloorMod", x1=slot, x2=length)]
    )
    return ge.custom_op(
        "ScatterNdUpdate",
        inputs={"var": cache, "indices": where, "updates": reshaped(new, -1, 1, depth)},
        attrs={"use_locking": attr.Bool(False)},
        outputs=["var"],
    )


def _concatenated(tensors: Sequence[Tensor]) -> Tensor:
    return ge.custom_op(
        "ConcatV2",
        inputs={"x": list(tensors), "concat_dim": ge.Const(-1, dtype=_LONG)},
        attrs={"N": attr.Int(len(tensors))},
        outputs=["y"],
    )


def _node(op_type: str, **inputs: Tensor) -> Tensor:
    return ge.custom_op(op_type, inputs=inputs, outputs=["y"])


def _integers(values: Sequence[int]) -> Tensor:
    return ge.Const(list(values), dtype=_LONG)
