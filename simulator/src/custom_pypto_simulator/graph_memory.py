"""Memory of the simulated device as tensors of torch, and CANN's functions behind it."""

from __future__ import annotations

import ctypes
import functools
import inspect
import math
import weakref
from collections.abc import Sequence
from operator import attrgetter
from typing import NoReturn

import torch
from torch import Tensor

try:
    from torchair._ge_concrete_graph.ge_ir_pb2 import DataType as NamedType
    from torchair._ge_concrete_graph.ge_ir_pb2 import ModelDef as ModelDef
    from torchair.ge import DataType
    from torchair.ge._ge_graph import ge_type_to_torch_type as ge_type_to_torch_type
    from torchair.ge._ge_graph import torch_type_to_ge_type as torch_type_to_ge_type

    inspect.signature(ge_type_to_torch_type).bind(DataType.DT_FLOAT)
    inspect.signature(torch_type_to_ge_type).bind(torch.float32)
    fields = attrgetter("name", "type", "attr", "input", "input_desc", "output_desc")
    fields(ModelDef().graph.add().op.add())
except (AttributeError, ImportError, TypeError) as error:
    raise ImportError(
        "the simulator reads graphs as the torchair in torch_npu 2.13 writes them; this torchair is"
        f" another: {error!r}. Run graphs with that torch_npu; calls work with this one"
    ) from error


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """A simulated library, which is loaded already."""
    found = ctypes.CDLL(name)
    if name == "libascendcl.so":
        found.aclGetRecentErrMsg.restype = ctypes.c_char_p
        found.custom_pypto_sim_on_device.restype = ctypes.c_bool
    return found


def fail(what: str) -> NoReturn:
    """Raises RuntimeError with the text of the recent error of CANN, else of `what`."""
    text: bytes | None = library("libascendcl.so").aclGetRecentErrMsg()
    raise RuntimeError(f"{what} failed" if text is None else text.decode())


def expect_success(code: int, what: str) -> None:
    """Raises RuntimeError unless `code` is CANN's of success."""
    if code != 0:
        fail(what)


def view(data: int, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """The memory at `data` as a tensor, which does not own it."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.frombuffer((ctypes.c_char * size).from_address(data), dtype=dtype).view(shape)


def empty_on_device(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Device memory, which lives as long as the tensor. Raises RuntimeError."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    acl, data = library("libascendcl.so"), ctypes.c_void_p()
    expect_success(acl.aclrtMalloc(ctypes.byref(data), ctypes.c_size_t(size), 0), "aclrtMalloc")
    assert data.value is not None
    buffer = (ctypes.c_char * size).from_address(data.value)
    weakref.finalize(buffer, acl.aclrtFree, data)
    return torch.frombuffer(buffer, dtype=dtype).view(shape)


def on_device(tensor: Tensor) -> Tensor:
    """The tensor, contiguous and on the device, as kernels need it: itself, or a copy."""
    whole = tensor.contiguous()
    is_there = library("libascendcl.so").custom_pypto_sim_on_device
    place = ctypes.c_void_p(whole.data_ptr()), ctypes.c_size_t(whole.nbytes)
    return whole if whole.nbytes == 0 or is_there(*place) else copy_on_device(whole)


def copy_on_device(tensor: Tensor) -> Tensor:
    """A copy on the device, in which later writes to the tensor do not show."""
    return empty_on_device(tensor.shape, tensor.dtype).copy_(tensor)


def torch_type(number: int) -> torch.dtype:
    """The type for the number of one in a serialised graph. Raises RuntimeError."""
    found: torch.dtype = ge_type_to_torch_type(getattr(DataType, NamedType.Name(number)))
    return found
