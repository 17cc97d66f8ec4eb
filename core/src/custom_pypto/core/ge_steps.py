"""Steps of ops as nodes of CANN's own operators; imported only once torchair is.

For converters: what a node's inputs need, and what ops are made of where GE registers no operator
that takes all steps at once. Sizes other than the number of tokens become constants of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchair import ge
from torchair.ge import attr

if TYPE_CHECKING:
    from torchair.ge import Tensor

_FLOAT = ge.DataType.DT_FLOAT
_INT = ge.DataType.DT_INT32
_LONG = ge.DataType.DT_INT64


def size(tensor: Tensor, dim: int) -> int:
    """A size of an argument; a symbolic one is fixed, and guarded."""
    return int(tensor.symsize[dim])


def cast(x: Tensor, dtype: int) -> Tensor:
    """x in a dtype of GE."""
    return ge.Cast(x, dst_type=dtype)


def as_int32(integers: Tensor | None) -> Tensor | None:
    """The only integers that CANN's types take; GE drops a cast that changes nothing."""
    return None if integers is None else cast(integers, _INT)


def at_most(lengths: Tensor, longest: int) -> Tensor:
    """Lengths, those above `longest` replaced by it."""
    return node("Minimum", x1=lengths, x2=ge.Const([longest], dtype=lengths.dtype))


def wide(x: Tensor) -> Tensor:
    """x in fp32."""
    return cast(x, _FLOAT)


def reshaped(x: Tensor, *sizes: int) -> Tensor:
    """x in another shape; one size may be -1."""
    return node("Reshape", x=x, shape=integers(sizes))


def rows(x: Tensor) -> Tensor:
    """[tokens, size] of an argument x [.., size]."""
    return reshaped(x, -1, size(x, -1))


def transposed(x: Tensor, *dims: int) -> Tensor:
    """x with its dims in another order."""
    return node("Transpose", x=x, perm=integers(dims))


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


def columns(x: Tensor, ndim: int, begin: int, end: int, step: int = 1) -> Tensor:
    """x [.., begin:end:step], where x has `ndim` dims."""
    others = [0] * (ndim - 1)
    every = 2 ** (ndim - 1) - 1
    return ge.custom_op(
        "StridedSlice",
        inputs={
            "x": x,
            "begin": integers([*others, begin]),
            "end": integers([*others, end]),
            "strides": integers([*[1] * (ndim - 1), step]),
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


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """x [T, C] in fp32 with mean 0 and variance 1, times gamma [C], plus beta [C]; in fp32."""
    normed, _, _ = ge.custom_op(
        "LayerNormV4",
        inputs={
            "x": x,
            "normalized_shape": integers([size(gamma, 0)]),
            "gamma": wide(gamma),
            "beta": wide(beta),
        },
        attrs={"epsilon": attr.Float(epsilon)},
        outputs=["y", "mean", "rstd"],
    )
    return normed


def rope(x: Tensor, rotated: int, sin: Tensor, cos: Tensor, dtype: int) -> Tensor:
    """x [T, heads, rotated] rotated by sin and cos [T, rotated], in fp32; then in `dtype`."""
    x = wide(x)
    even, odd = (columns(x, 3, first, rotated, 2) for first in (0, 1))
    cos, sin = (wide(reshaped(angle, -1, 1, rotated)) for angle in (cos, sin))
    straight = node("Mul", x1=concatenated([even, odd]), x2=cos)
    across = node("Mul", x1=concatenated([node("Neg", x=odd), even]), x2=sin)
    return cast(node("Add", x1=straight, x2=across), dtype)


def rope_first(
    x: Tensor, head_size: int, rotated: int, sin: Tensor, cos: Tensor, dtype: int
) -> Tensor:
    """`rope` on the first `rotated` dims of x [T, heads, head_size]."""
    front = rope(columns(x, 3, 0, rotated), rotated, sin, cos, dtype)
    if rotated == head_size:
        return front
    return concatenated([front, columns(x, 3, rotated, head_size)])


def scatter(cache: Tensor, slots: Tensor, new: Tensor, *, after: Tensor | None = None) -> Tensor:
    """Write new [T, ..] into cache [blocks, block_size, ..] at slots; returns the cache.

    The node that writes is the last one made. It runs once `after` is there.
    """
    block_size = size(cache, 1)
    row = [size(cache, dim) for dim in range(2, cache.rank)]
    slot = cast(slots, _LONG)
    if after is not None:
        slot = ge.Clone(slot, dependencies=[after])
    slot = reshaped(slot, -1, 1)
    length = ge.Const(block_size, dtype=_LONG)
    where = concatenated(
        [node("FloorDiv", x1=slot, x2=length), node("FloorMod", x1=slot, x2=length)]
    )
    return ge.custom_op(
        "ScatterNdUpdate",
        inputs={"var": cache, "indices": where, "updates": reshaped(new, -1, *row)},
        attrs={"use_locking": attr.Bool(False)},
        outputs=["var"],
    )


def concatenated(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side in the last dim."""
    return ge.custom_op(
        "ConcatV2",
        inputs={"x": list(tensors), "concat_dim": ge.Const(-1, dtype=_LONG)},
        attrs={"N": attr.Int(len(tensors))},
        outputs=["y"],
    )


def node(op_type: str, **inputs: Tensor) -> Tensor:
    """A node with these inputs, no attributes, and one output y."""
    return ge.custom_op(op_type, inputs=inputs, outputs=["y"])


def integers(values: Sequence[int]) -> Tensor:
    """A constant."""
    return ge.Const(list(values), dtype=_LONG)
