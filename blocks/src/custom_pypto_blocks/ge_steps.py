"""Steps of ops as nodes of CANN's own operators; imported only once torchair is.

For converters: what a node's inputs need, and what ops are made of where GE registers no operator
that takes all steps at once. Sizes other than the number of tokens become constants of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto.core.ge_operators import definition_of
from torchair import ge
from torchair.ge import attr

if TYPE_CHECKING:
    from torchair.ge import Tensor

_FLOAT = ge.DataType.DT_FLOAT
_INT = ge.DataType.DT_INT32
_LONG = ge.DataType.DT_INT64


def converter_of(op: str) -> Callable[[Callable[[SimpleNamespace], Any]], Callable[..., Any]]:
    """Make a converter of a function of an op's arguments by name."""

    def make(convert: Callable[[SimpleNamespace], Any]) -> Callable[..., Any]:
        def call(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
            return convert(SimpleNamespace(**bind_arguments(contract(op), args, kwargs)))

        return call

    return make


def without_operator(op: str) -> Callable[..., NoReturn]:
    """Make a converter of an op that the graph engine has no operator for: it refuses the op."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            f"{op}: torchair's graph engine has no operator for it; use graphs that replay eager"
            " kernels: mode 'npugraph_ex', or a captured torch.npu.NPUGraph"
        )

    return refuse


def is_registered_with(
    op_type: str, *, inputs: Iterable[str], attributes: Iterable[str], outputs: Iterable[str]
) -> bool:
    """Whether `op_type` is registered and a node can have these inputs, attributes and outputs.

    Versions of CANN register one type differently. The inputs must be the first registered inputs,
    in their order; the outputs must be all registered outputs. Further attributes, and further
    optional inputs, may be registered.

    Raises:
        RuntimeError: the graph engine's operators cannot be looked up.
    """
    definition = definition_of(op_type)
    if definition is None:
        return False
    registered, registered_outputs, registered_attributes = definition
    given = list(inputs)
    further = registered[len(given) :]
    return (
        [name for name, _ in registered[: len(given)]] == given
        and all(kind == "optional" for _, kind in further)
        and {name for name, _ in registered_outputs} == set(outputs)
        and {name for name, _ in registered_attributes} >= set(attributes)
    )


def size(tensor: Tensor, dim: int) -> int:
    """A size of an argument; a symbolic one is fixed, and guarded."""
    return int(tensor.symsize[dim])


def cast(x: Tensor, dtype: int) -> Tensor:
    """x in a dtype of GE."""
    return ge.Cast(x, dst_type=dtype)


def as_int32(integers: Tensor | None) -> Tensor | None:
    """The only integers that CANN's types take; GE drops a cast that changes nothing."""
    return None if integers is None else cast(integers, _INT)


def clamp_max(lengths: Tensor, longest: int) -> Tensor:
    """Lengths, those above `longest` replaced by it."""
    return node("Minimum", x1=lengths, x2=ge.Const([longest], dtype=lengths.dtype))


def as_float32(x: Tensor) -> Tensor:
    """x in fp32."""
    return cast(x, _FLOAT)


def reshape(x: Tensor, *sizes: int) -> Tensor:
    """x in another shape; one size may be -1."""
    return node("Reshape", x=x, shape=integers(sizes))


def rows(x: Tensor) -> Tensor:
    """[tokens, size] of an argument x [.., size]."""
    return reshape(x, -1, size(x, -1))


def transpose(x: Tensor, *dims: int) -> Tensor:
    """x with its dims in another order."""
    return node("Transpose", x=x, perm=integers(dims))


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x [T, K] @ weight [K, N], in their dtype."""
    attrs = {"transpose_x1": attr.Bool(False), "transpose_x2": attr.Bool(False)}
    return node("MatMulV2", attrs, x1=x, x2=weight)


def batch_matmul(x: Tensor, weight: Tensor) -> Tensor:
    """x [B, T, K] @ weight [B, K, N], in their dtype."""
    attrs = {"adj_x1": attr.Bool(False), "adj_x2": attr.Bool(False)}
    return node("BatchMatMulV2", attrs, x1=x, x2=weight)


def columns(x: Tensor, ndim: int, begin: int, end: int, step: int = 1) -> Tensor:
    """x [.., begin:end:step], where x has `ndim` dims."""
    others = [0] * (ndim - 1)
    every = 2 ** (ndim - 1) - 1
    masks = {"begin": every, "end": every, "ellipsis": 0, "new_axis": 0, "shrink_axis": 0}
    return node(
        "StridedSlice",
        {f"{name}_mask": attr.Int(mask) for name, mask in masks.items()},
        x=x,
        begin=integers([*others, begin]),
        end=integers([*others, end]),
        strides=integers([*[1] * (ndim - 1), step]),
    )


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """x [T, C] in fp32 with mean 0 and variance 1, times gamma [C], plus beta [C]; in fp32."""
    normed, _, _ = ge.custom_op(
        "LayerNormV4",
        inputs={
            "x": x,
            "normalized_shape": integers([size(gamma, 0)]),
            "gamma": as_float32(gamma),
            "beta": as_float32(beta),
        },
        attrs={"epsilon": attr.Float(epsilon)},
        outputs=["y", "mean", "rstd"],
    )
    return normed


def rope(x: Tensor, rotated: int, sin: Tensor, cos: Tensor, dtype: int) -> Tensor:
    """x [T, heads, rotated] rotated by sin and cos [T, rotated], in fp32; then in `dtype`."""
    x = as_float32(x)
    even, odd = (columns(x, 3, first, rotated, 2) for first in (0, 1))
    cos, sin = (as_float32(reshape(angle, -1, 1, rotated)) for angle in (cos, sin))
    straight = node("Mul", x1=concatenate([even, odd]), x2=cos)
    across = node("Mul", x1=concatenate([node("Neg", x=odd), even]), x2=sin)
    return cast(node("Add", x1=straight, x2=across), dtype)


def rope_first(
    x: Tensor, head_size: int, rotated: int, sin: Tensor, cos: Tensor, dtype: int
) -> Tensor:
    """`rope` on the first `rotated` dims of x [T, heads, head_size]."""
    front = rope(columns(x, 3, 0, rotated), rotated, sin, cos, dtype)
    if rotated == head_size:
        return front
    return concatenate([front, columns(x, 3, rotated, head_size)])


def scatter(cache: Tensor, slots: Tensor, new: Tensor, *, after: Tensor | None = None) -> Tensor:
    """Write new [T, ..] into cache [blocks, block_size, ..] at slots; returns the cache.

    The node that writes is the last one made. It runs once `after` is there.
    """
    block_size = size(cache, 1)
    row = [size(cache, dim) for dim in range(2, cache.rank)]
    slot = cast(slots, _LONG)
    if after is not None:
        slot = ge.Clone(slot, dependencies=[after])
    slot = reshape(slot, -1, 1)
    length = ge.Const(block_size, dtype=_LONG)
    where = concatenate(
        [node("FloorDiv", x1=slot, x2=length), node("FloorMod", x1=slot, x2=length)]
    )
    return ge.custom_op(
        "ScatterNdUpdate",
        inputs={"var": cache, "indices": where, "updates": reshape(new, -1, *row)},
        attrs={"use_locking": attr.Bool(False)},
        outputs=["var"],
    )


def concatenate(tensors: Sequence[Tensor]) -> Tensor:
    """Side by side in the last dim."""
    last = ge.Const(-1, dtype=_LONG)
    return node("ConcatV2", {"N": attr.Int(len(tensors))}, x=list(tensors), concat_dim=last)


def node(op_type: str, attrs: dict[str, Any] | None = None, **inputs: Any) -> Tensor:
    """A node with these inputs and attributes, and one output y."""
    return ge.custom_op(op_type, inputs=inputs, attrs=attrs, outputs=["y"])


def integers(values: Sequence[int]) -> Tensor:
    """A constant."""
    return ge.Const(list(values), dtype=_LONG)
