"""Simulated aclnn kernels for the graph engine: found as for eager calls, run in both phases.

The parameters of a kernel, as they stand in its source, are the inputs, outputs and attributes of
the engine's op.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
import torch_npu
from torch import Tensor

from .graph_memory import (
    empty_on_device,
    expect_success,
    fail,
    library,
    on_device,
    torch_type,
    torch_type_to_ge_type,
)

_ND = 2
_ARRAYS = {
    "VT_LIST_INT": ("IntArray", "i", ctypes.c_int64),
    "VT_LIST_FLOAT": ("FloatArray", "f", ctypes.c_float),
    "VT_LIST_BOOL": ("BoolArray", "b", ctypes.c_bool),
}
# The graph engine's type of an attribute, and the type in C, by the type in C++.
_ATTRIBUTES: dict[str, tuple[str, Any]] = {
    "bool": ("VT_BOOL", ctypes.c_bool),
    "int8_t": ("VT_INT", ctypes.c_int8),
    "int32_t": ("VT_INT", ctypes.c_int32),
    "int64_t": ("VT_INT", ctypes.c_int64),
    "uint64_t": ("VT_INT", ctypes.c_uint64),
    "float": ("VT_FLOAT", ctypes.c_float),
    "double": ("VT_FLOAT", ctypes.c_double),
    "at::ScalarType": ("VT_DATA_TYPE", ctypes.c_int),
    "std::string": ("VT_STRING", ctypes.c_char_p),
    "std::vector<int64_t>": ("VT_LIST_INT", None),
    "std::vector<float>": ("VT_LIST_FLOAT", None),
    "std::vector<bool>": ("VT_LIST_BOOL", None),
}
_ROLES = {
    "at::Tensor": "input",
    "const aclTensor&": "input",
    "std::vector<at::Tensor>": "dynamic",
    "std::vector<aclTensor>": "dynamic",
    "at::Tensor&": "output",
}
# The fields of AttrDef that hold an attribute of a type.
_FIELDS = {
    "VT_BOOL": ("b",),
    "VT_INT": ("i", "dt"),
    "VT_FLOAT": ("f",),
    "VT_DATA_TYPE": ("i", "dt"),
    "VT_STRING": ("s",),
    **dict.fromkeys(_ARRAYS, ("list",)),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, as the graph engine's op has it."""

    name: str
    role: str
    """input, optional, dynamic, output, written_input or attribute"""
    type: str
    """The graph engine's type of an attribute, or why there is none."""
    in_c: Any
    """The type of an attribute in C, except for lists."""

    @property
    def in_ir(self) -> tuple[tuple[int, str], ...]:
        """Its places in the IR: of an input 0, of an output 1, of an attribute 2; and its kind."""
        return {
            "input": ((0, "required"),),
            "optional": ((0, "optional"),),
            "dynamic": ((0, "dynamic"),),
            "output": ((1, "required"),),
            "written_input": ((0, "required"), (1, "required")),
            "attribute": ((2, self.type),),
        }[self.role]


@dataclass(frozen=True)
class Kernel:
    """A simulated kernel, and its parameters in their order."""

    name: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(each.name for each in self.parameters)})"


class _Record(ctypes.Structure):
    """As `Op` in aclnn.h."""

    _fields_ = (("abi", ctypes.c_char_p), ("parameters", ctypes.c_char_p))


@functools.cache
def find(type_: str) -> Kernel | None:
    """The kernel for a type of nodes that a library of simulated kernels has.

    Raises RuntimeError when that library was built for another simulator.
    """
    name = f"aclnn{type_}"
    address = _address(f"custom_pypto_sim_op_{name}")
    if not address:
        return None
    record = _Record.from_address(address)
    check = library("libascendcl.so").custom_pypto_sim_check_abi
    expect_success(check(ctypes.c_char_p(record.abi), name.encode()), name)
    return Kernel(name, tuple(map(_parameter, record.parameters.decode().split(","))))


def _address(symbol: str) -> int | None:
    """The address of a symbol of an opp package. torch_npu finds eager kernels the same way."""
    search = library("libtorch_npu.so")._Z16GetOpApiFuncAddrPKc
    search.restype = ctypes.c_void_p
    found: int | None = search(symbol.encode())
    return found


def _parameter(declared: str) -> Parameter:
    """Reads a declaration, such as "at::Tensor& cacheRef"."""
    match = re.fullmatch(r"((?:const )?[\w:<>]+&?) ?(\w*)", " ".join(declared.split()))
    written, name = match.groups() if match else (declared, "")
    whole = "std::optional<at::Tensor>" if written == "Optional" else written
    in_cpp = re.sub(r"^std::optional<(.*)>$", r"\1", whole)
    role = _ROLES.get(in_cpp, "attribute")
    if role == "output" and name.endswith("Ref"):
        name, role = name.removesuffix("Ref"), "written_input"
    elif role == "input" and in_cpp != written:
        role = "optional"
    unknown = (f"a type that the graph engine has no attribute for, {written}", None)
    return Parameter(name, role, *_ATTRIBUTES.get(in_cpp, unknown))


def run(
    kernel: Kernel, node: Any, inputs: Sequence[Tensor | None], shapes: Sequence[Sequence[int]]
) -> list[Tensor]:
    """Runs a node with aclnn objects that are made as eager calls make them.

    `inputs` are in the node's order, None where an optional one is absent; `shapes` is for
    the outputs. An output that is written in place is the input itself. Raises ValueError for what
    the kernel does not take, and RuntimeError when it fails.
    """
    with ExitStack() as made:
        return _Call(kernel, node, inputs, shapes, made).run()


class _Call:
    def __init__(
        self,
        kernel: Kernel,
        node: Any,
        inputs: Sequence[Tensor | None],
        shapes: Sequence[Sequence[int]],
        made: ExitStack,
    ) -> None:
        self._kernel, self._node, self._shapes, self._made = kernel, node, shapes, made
        self._inputs = {
            desc.name: each for desc, each in zip(node.input_desc, inputs, strict=False)
        }
        self._attributes = {name: node.attr[name] for name in node.attr if name[:1] != "_"}
        self._written: dict[str, Tensor] = {}
        # Copies on the device, until the kernel has run.
        self._alive: list[Tensor] = []

    def run(self) -> list[Tensor]:
        arguments = [getattr(self, f"_{each.role}")(each) for each in self._kernel.parameters]
        for name in self._inputs:
            self._refuse(f"was given the input '{name}', which it does not take")
        for name in self._attributes:
            self._refuse(f"was given the attribute '{name}', which it does not take")
        _launch(self._kernel.name, arguments)
        for description in self._node.output_desc:
            if description.name not in self._written:
                self._refuse(f"has an output '{description.name}', which it does not write")
        return [self._written[description.name] for description in self._node.output_desc]

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(f"{self._node.type} {what}; the kernel is {self._kernel}")

    def _optional(self, parameter: Parameter) -> ctypes.c_void_p | None:
        tensor = self._inputs.pop(parameter.name, None)
        return None if tensor is None else self._keep("Tensor", self._tensor(on_device(tensor)))

    def _required(self, parameter: Parameter) -> Tensor:
        tensor = self._inputs.pop(parameter.name, None)
        return self._refuse(f"needs the input '{parameter.name}'") if tensor is None else tensor

    def _input(self, parameter: Parameter) -> ctypes.c_void_p:
        return self._keep("Tensor", self._tensor(on_device(self._required(parameter))))

    def _written_input(self, parameter: Parameter) -> ctypes.c_void_p:
        tensor = self._written[parameter.name] = self._required(parameter)
        return self._keep("Tensor", self._tensor(tensor))

    def _dynamic(self, parameter: Parameter) -> ctypes.c_void_p:
        names = [name for name in self._inputs if re.fullmatch(rf"{parameter.name}\d*", name)]
        tensors = (self._inputs.pop(name) for name in names)
        made = [self._tensor(on_device(each)) for each in tensors if each is not None]
        return self._array("TensorList", ctypes.c_void_p, made)

    def _output(self, parameter: Parameter) -> ctypes.c_void_p:
        names = [description.name for description in self._node.output_desc]
        if parameter.name not in names:
            self._refuse(f"has no output '{parameter.name}'")
        index = names.index(parameter.name)
        dtype = torch_type(self._node.output_desc[index].dtype)
        tensor = self._written[parameter.name] = empty_on_device(self._shapes[index], dtype)
        return self._keep("Tensor", self._tensor(tensor))

    def _attribute(self, parameter: Parameter) -> Any:
        given = self._attributes.pop(parameter.name, None)
        if given is None:
            self._refuse(f"needs the attribute '{parameter.name}'")
        if (field := given.WhichOneof("value")) not in _FIELDS.get(parameter.type, ()):
            self._refuse(f"has an attribute '{parameter.name}' that is not a {parameter.type}")
        value = getattr(given, field)
        if parameter.type in _ARRAYS:
            kind, elements, in_c = _ARRAYS[parameter.type]
            return self._array(kind, in_c, getattr(value, elements))
        return parameter.in_c(value)

    def _array(self, kind: str, in_c: Any, values: Sequence[Any]) -> ctypes.c_void_p:
        elements = (in_c * len(values))(*values)
        return self._keep(kind, _create(kind, elements, ctypes.c_uint64(len(values))))

    def _tensor(self, tensor: Tensor) -> int:
        """The address of an aclTensor."""
        self._alive.append(tensor)
        sizes, strides, elements = (
            (ctypes.c_int64 * len(numbers))(*numbers)
            for numbers in (tensor.shape, tensor.stride(), (tensor.numel(),))
        )
        dtype = torch_type_to_ge_type(tensor.dtype)
        rank, one, data = ctypes.c_uint64(tensor.dim()), ctypes.c_uint64(1), tensor.data_ptr()
        zero = ctypes.c_int64(0)
        place = ctypes.c_void_p(data)
        return _create("Tensor", sizes, rank, dtype, strides, zero, _ND, elements, one, place)

    def _keep(self, kind: str, address: int) -> ctypes.c_void_p:
        """An object, destroyed when the call is over."""
        made = ctypes.c_void_p(address)
        self._made.callback(getattr(library("libascendcl.so"), f"aclDestroy{kind}"), made)
        return made


def _create(kind: str, *arguments: Any) -> int:
    create = getattr(library("libascendcl.so"), f"aclCreate{kind}")
    create.restype = ctypes.c_void_p
    made: int | None = create(*arguments)
    return fail(f"aclCreate{kind}") if made is None else made


def _launch(name: str, arguments: Sequence[Any]) -> None:
    """Both phases, on the current stream; waits until the kernel has run."""
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    ends = ctypes.byref(size), ctypes.byref(executor)
    expect_success(_function(f"{name}GetWorkspaceSize")(*arguments, *ends), name)
    workspace = empty_on_device([size.value], torch.uint8)
    place = ctypes.c_void_p(workspace.data_ptr())
    stream = ctypes.c_void_p(torch_npu.npu.current_stream().npu_stream)
    expect_success(_function(name)(place, size, executor, stream), name)
    expect_success(library("libascendcl.so").aclrtSynchronizeStream(stream), name)


def _function(name: str) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int)(_address(name) or 0)
