"""The attributes of a tensor in the expressions of a contract: ``x.ndim``, ``x.shape``, .."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Attribute:
    """One attribute of a tensor."""

    type: str
    """Its type in an expression, one of `custom_pypto_contract.types.Types`."""
    help: str
    """Its row in the documentation."""
    get: Callable[[Any], Any]
    """Gives the value of a ``torch.Tensor``."""
    cpp: str = ""
    """The C++ of it on a ``custom_pypto::TensorInfo``; '' where it has none."""
    message: str = ""
    """The C++ of it on a ``Tensor``, ``{}``, for a message; '' where it has none."""
    element: str = ""
    """The C++ of one element on a ``custom_pypto::TensorInfo``; '' where it has none."""


ATTRIBUTES: Mapping[str, Attribute] = {
    "ndim": Attribute(
        type="int",
        help="the number of dimensions",
        get=lambda tensor: tensor.dim(),
        cpp="ndim",
        message="{}.dim()",
    ),
    "shape": Attribute(
        type="sizes",
        help="the sizes; `x.shape[-1]` is one of them, `x.shape[:-2]` are the first ones",
        get=lambda tensor: list(tensor.shape),
        cpp="sizes_until()",
        element="size",
        message="{}.sizes()",
    ),
    "strides": Attribute(
        type="sizes",
        help="the strides in elements; `x.strides[-1]` is one of them",
        get=lambda tensor: list(tensor.stride()),
        cpp="strides()",
        element="stride",
        message="{}.strides()",
    ),
    "dtype": Attribute(
        type="dtype",
        help="the dtype, to be compared with a dtype's name or with another tensor's",
        get=lambda tensor: str(tensor.dtype).removeprefix("torch."),
        cpp="dtype",
        message="custom_pypto::dtype_name({})",
    ),
    "device": Attribute(
        type="device",
        help="the device, to be compared with another tensor's",
        get=lambda tensor: tensor.device,
        cpp="placement",
        message="{}.device()",
    ),
    "is_contiguous": Attribute(
        type="bool",
        help="whether the tensor is contiguous",
        get=lambda tensor: tensor.is_contiguous(),
        cpp="is_contiguous()",
        message="{}.is_contiguous()",
    ),
    "length": Attribute(
        type="int",
        help="only for a `Tensor[]`: the number of tensors. A list else has only `dtype`",
        get=len,
        cpp="length",
        message="custom_pypto::length({})",
    ),
}
OF_LISTS = ("length", "dtype", "numel", "nbytes")
"""The attributes of a list of tensors: `dtype` is the first tensor's, the costs are sums."""

COST_ATTRIBUTES: Mapping[str, Attribute] = {
    "numel": Attribute("int", "the number of elements", lambda tensor: tensor.numel()),
    "itemsize": Attribute("int", "the bytes of one element", lambda tensor: tensor.itemsize),
    "nbytes": Attribute("int", "the bytes of all elements", lambda tensor: tensor.nbytes),
}
"""Further attributes in ``flops`` and ``bytes``, which C++ does not evaluate."""

ALL_ATTRIBUTES: Mapping[str, Attribute] = {**ATTRIBUTES, **COST_ATTRIBUTES}
