"""The graph engine's own operators, which torchair's converters use, computed by torch.

The inputs of a node are the positional arguments of a function here, in their order; None stands
for an absent one. Attributes are the keyword arguments. csrc/opapi/ops.cpp says why the functions
of calls have another table.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from .graph_memory import copy_on_device, ge_type_to_torch_type

Ints = Sequence[int]


def run(type_: str, inputs: Iterable[Tensor | None], attributes: Mapping[str, Any]) -> list[Tensor]:
    """Computes a node. Raises ValueError for an attribute that is unknown, or not emulated."""
    known, only = _keywords(type_), _ONLY.get(type_, {})
    given = {}
    for name, value in attributes.items():
        if name in only:
            _expect(type_, name, value, only[name])
        elif name in known:
            wanted = _WANTED.get(type(known[name]), object)
            if not isinstance(value, wanted):
                raise ValueError(f"{type_} has an attribute '{name}' that is not of {wanted}")
            given[name] = value
        else:
            raise ValueError(f"{type_} was given the attribute '{name}', which is not known of it")
    result = OPERATORS[type_](*inputs, **given)
    return [result] if isinstance(result, Tensor) else list(result)


def _expect(type_: str, name: str, value: object, only: object) -> None:
    if value != only:
        raise ValueError(f"{type_} with the attribute '{name}' = {value} is not emulated")


_WANTED: dict[type, Any] = {bool: int, int: int, float: float, tuple: list}
"""The type of an attribute, by the type of its default."""


@functools.cache
def _keywords(type_: str) -> dict[str, Any]:
    """The attributes of an operator, and their defaults."""
    function = OPERATORS[type_]
    if not isinstance(function, FunctionType):
        return {}
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def _matmul(
    x: Tensor,
    y: Tensor,
    bias: Tensor | None = None,
    *_: object,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
) -> Tensor:
    x, y = x.mT if transpose_x1 else x, y.mT if transpose_x2 else y
    if bias is None:
        return torch.matmul(x, y)
    # The bias is added before the result is rounded.
    return (torch.matmul(x.float(), y.float()) + bias).to(x.dtype)


def _batch_matmul(*inputs: Any, adj_x1: bool = False, adj_x2: bool = False) -> Tensor:
    return _matmul(*inputs, transpose_x1=adj_x1, transpose_x2=adj_x2)


_UNSAID = -1


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reduce(
        x: Tensor, axes: Tensor, *, keep_dims: bool = False, noop_with_empty_axes: int = _UNSAID
    ) -> Tensor:
        if axes.numel() == 0 and x.dim() != 0:
            if noop_with_empty_axes == _UNSAID:
                raise ValueError("a reduction over no axes must say noop_with_empty_axes")
            if noop_with_empty_axes:
                return x
        return function(x, axes.tolist(), keep_dims)

    return reduce


def _pack(*inputs: Tensor, axis: int = 0, N: int = 0) -> Tensor:  # noqa: N803
    _expect("Pack", "N", N or len(inputs), len(inputs))
    return torch.stack(inputs, axis)


def _concat(*inputs: Tensor, N: int = 0) -> Tensor:  # noqa: N803
    *parts, axis = inputs
    _expect("ConcatV2", "N", N or len(parts), len(parts))
    return torch.cat(parts, int(axis))


def _unsqueeze(x: Tensor, *, axes: Ints = ()) -> Tensor:
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _softmax(x: Tensor, *, axes: Ints = (-1,), half_to_float: bool = False) -> Tensor:
    if len(axes) != 1:
        raise ValueError("SoftmaxV2 over several axes is not emulated")
    return torch.softmax(x, axes[0], dtype=torch.float32 if half_to_float else None)


def _gather(
    x: Tensor, indices: Tensor, axis: Tensor, *, negative_index_support: bool = False
) -> Tensor:
    place = int(axis) % x.dim()
    if negative_index_support:
        indices = torch.where(indices < 0, indices + x.size(place), indices)
    shape = [*x.shape[:place], *indices.shape, *x.shape[place + 1 :]]
    return x.index_select(place, indices.flatten()).reshape(shape)


def _strided_slice(
    x: Tensor, begin: Tensor, end: Tensor, step: Tensor, *, begin_mask: int = 0, end_mask: int = 0
) -> Tensor:
    ranges = zip(begin.tolist(), end.tolist(), step.tolist(), strict=True)
    for dim, (first, last, by) in enumerate(ranges):
        # A mask removes an end.
        start = None if begin_mask >> dim & 1 else first
        stop = None if end_mask >> dim & 1 else last
        x = torch.ops.aten.slice.Tensor(x, dim, start, stop, by)
    return x


def _rms_norm(x: Tensor, gamma: Tensor, *, epsilon: float = 1e-6) -> Iterable[Tensor]:
    squares = x.float().square().mean(tuple(range(-gamma.dim(), 0)), keepdim=True)
    return torch.rms_norm(x, gamma.shape, gamma, epsilon), (squares + epsilon).rsqrt()


def _sort(
    x: Tensor, *, axis: int = -1, descending: bool = False, stable: bool = False
) -> Iterable[Tensor]:
    values, indices = torch.sort(x, dim=axis, descending=bool(descending), stable=bool(stable))
    return values, indices.int()


def _trans_quant_param(scale: Tensor, offset: Tensor | None = None, **_: object) -> Tensor:
    """19 bits of the scale, and the offset as an integer of 9 bits, in a number of 64."""
    bits = scale.view(torch.int32).long() & 0xFFFFE000
    return bits if offset is None else bits + ((offset.round().long() & 511) << 37)


_OF_TORCH = """
    Abs Add Cos Exp Greater GreaterEqual Less LessEqual Log LogicalAnd LogicalNot LogicalOr Maximum
    Minimum Mul Neg NotEqual Pow Reciprocal Relu Rsqrt Sigmoid Sin Sqrt Square Sub Tanh
"""
"""What torch has by the same name."""


def _of_torch(type_: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(torch, re.sub("(?<=[a-z])(?=[A-Z])", "_", type_).lower())
    return function


OPERATORS: dict[str, Callable[..., Any]] = {
    **{type_: _of_torch(type_) for type_ in _OF_TORCH.split()},
    "AddV2": torch.add,
    "Adds": lambda x, *, value: x + value,
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BroadcastTo": lambda x, shape: x.expand(shape.tolist()),
    "Cast": lambda x, *, dst_type: x.to(ge_type_to_torch_type(dst_type)),
    "ConcatV2": _concat,
    "Equal": torch.eq,
    "Fill": lambda shape, value: value.expand(shape.tolist()).clone(),
    "FloorDiv": torch.floor_divide,
    "FloorMod": torch.remainder,
    "GatherV2": _gather,
    "Identity": copy_on_device,
    "IdentityN": lambda *inputs: map(copy_on_device, inputs),
    "LayerNormV4": lambda x, shape, gamma, beta, *, epsilon=1e-5: torch.native_layer_norm(
        x, shape.tolist(), gamma, beta, epsilon
    ),
    "MatMul": _matmul,
    "MatMulV2": _matmul,
    "Muls": lambda x, *, value: x * value,
    "Pack": _pack,
    "RealDiv": torch.div,
    "ReduceMax": lambda x, axes, *, keep_dims=False: torch.amax(x, axes.tolist(), keep_dims),
    "ReduceMean": _reduction(torch.mean),
    "ReduceSum": _reduction(torch.sum),
    "Reshape": lambda x, shape: x.reshape(shape.tolist()),
    "Rint": torch.round,
    "RmsNorm": _rms_norm,
    # In place, like the operator.
    "ScatterNdUpdate": lambda x, indices, updates: x.index_put_(indices.long().unbind(-1), updates),
    "Select": torch.where,
    "SelectV2": torch.where,
    "Shape": lambda x, *, dtype=3: torch.tensor(
        x.shape, dtype=ge_type_to_torch_type(dtype), device="cpu"
    ),
    "SoftmaxV2": _softmax,
    "Sort": _sort,
    "Squeeze": lambda x, *, axis=(): x.squeeze(tuple(axis)) if axis else x.squeeze(),
    "StridedSlice": _strided_slice,
    "Swish": torch.nn.functional.silu,
    "TensorMove": copy_on_device,
    "TransQuantParamV2": _trans_quant_param,
    "Transpose": lambda x, order: x.permute(order.tolist()),
    "Unsqueeze": _unsqueeze,
}
_ONLY: dict[str, dict[str, object]] = {
    "BatchMatMul": {"offset_x": 0},
    "BatchMatMulV2": {"offset_x": 0},
    "Exp": {"base": -1.0, "scale": 1.0, "shift": 0.0},
    "GatherV2": {"batch_dims": 0, "is_preprocessed": False},
    "Log": {"base": -1.0, "scale": 1.0, "shift": 0.0},
    "MatMul": {"offset_x": 0},
    "MatMulV2": {"offset_x": 0},
    "Reshape": {"axis": 0, "num_axes": -1},
    "ScatterNdUpdate": {"use_locking": False},
    "StridedSlice": {"ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0},
    "Swish": {"scale": 1.0},
}
"""Attributes of which one value is emulated."""
