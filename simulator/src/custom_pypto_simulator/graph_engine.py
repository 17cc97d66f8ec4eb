"""The graph engine: computes graphs of torchair node by node, when torchair calls.

Nodes run in an adverse order: those that no output needs do not run, and of those that may run
next, the one made last comes first. So a converter that relies on the order in which it made nodes
fails. The values between nodes live until the end of a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

import torch
import torch_npu
from torch import Tensor

from . import graph_kernels, graph_operators
from .graph_memory import ModelDef, on_device, torch_type, view

_OF_GRAPHS = ("Data", "Const", "NetOutput")
_FRACTAL_NZ = 29
_SIZES = re.compile(r"torch\.Size\(\[(.*?)\]")


class Graph:
    """A serialised graph of torchair."""

    def __init__(self, serialised: bytes) -> None:
        """Raises ValueError when an operator that an output needs is not emulated."""
        # Further graphs belong to control flow.
        self._nodes = ModelDef.FromString(serialised).graph[0].op
        self._arguments = [node for node in self._nodes if node.type == "Data"]
        self._order = _schedule(self._nodes)
        types = {node.type for node in self._order}.difference(_OF_GRAPHS)
        self._kernels = {type_: _kernel(type_) for type_ in types}
        self._given: dict[int, tuple[int, int]] = {}

    @torch.no_grad()
    def run(self, inputs: Sequence[Tensor], assigned: Sequence[Tensor | None]) -> list[Tensor]:
        """Computes the outputs, into those that are assigned, once the current stream is done.

        Raises ValueError, or what a kernel raises.
        """
        torch_npu.npu.current_stream().synchronize()
        values: dict[str, Tensor] = {}
        symbols: dict[str, int] = {}
        # Arguments first, used or not: the sizes of other nodes may be computed from theirs.
        for node in self._arguments:
            value = values[f"{node.name}:0"] = _argument(inputs[node.attr["index"].i])
            _bind(node.output_desc[0], value, symbols)
        for node in self._order:
            # The others are control edges.
            names = (name for name in node.input if not name.endswith(":-1"))
            given = [values[name] if name else None for name in names]
            if node.type == "NetOutput":
                outputs = self._outputs(node, given, assigned)
                continue
            for index, result in enumerate(self._compute(node, given, symbols)):
                values[f"{node.name}:{index}"] = result
        return outputs

    def _compute(
        self, node: Any, inputs: Sequence[Tensor | None], symbols: dict[str, int]
    ) -> Sequence[Tensor]:
        if node.type == "Const":
            return [_constant(node.attr["value"].t)]
        kernel = self._kernels[node.type]
        if kernel is not None:
            shapes = [_shape(each, symbols) for each in node.output_desc]
            return graph_kernels.run(kernel, node, inputs, shapes)
        attributes = {name: _value(node.attr[name]) for name in node.attr if name[:1] != "_"}
        return [*map(on_device, graph_operators.run(node.type, inputs, attributes))]

    def _outputs(
        self, node: Any, results: Sequence[Tensor | None], assigned: Sequence[Tensor | None]
    ) -> list[Tensor]:
        outputs = []
        for number, (result, description) in enumerate(zip(results, node.input_desc, strict=True)):
            assert result is not None
            dtype = torch_type(description.dtype)
            output = assigned[number] if assigned else None
            if output is None:
                output = torch.empty(result.shape, dtype=dtype, device="npu")
            else:
                self._check_assigned(number, output, result.shape, dtype)
            view(output.data_ptr(), output.shape, dtype).copy_(result)
            outputs.append(output)
        return outputs

    def _check_assigned(
        self, number: int, output: Tensor, shape: torch.Size, dtype: torch.dtype
    ) -> None:
        """Raises ValueError where an output is not as the result, or has less memory for GE."""
        if output.shape != shape or output.dtype != dtype or not output.is_contiguous():
            raise ValueError(
                f"output {number} must be contiguous with shape {list(shape)} and dtype {dtype},"
                f" got shape {list(output.shape)}, strides {list(output.stride())} and dtype"
                f" {output.dtype}"
            )
        # As torchair, which gives GE another size only together with another address.
        address, size = self._given.get(number, (0, 0))
        if address != output.data_ptr():
            size = output.nbytes
            self._given[number] = output.data_ptr(), size
        if size < output.nbytes:
            raise ValueError(
                f"given buffer size {size} is less than output tensor size {output.nbytes}"
            )


def _kernel(type_: str) -> graph_kernels.Kernel | None:
    """The simulated kernel of an operator, None for an operator of the engine."""
    kernel = graph_kernels.find(type_)
    if kernel is None and type_ not in graph_operators.OPERATORS:
        raise ValueError(
            f"the graph engine's operator '{type_}' is not emulated, and no simulated kernel"
            f" aclnn{type_} was found. Add it to custom_pypto_simulator/graph_operators.py, or to a"
            " library of simulated kernels that ASCEND_CUSTOM_OPP_PATH names"
        )
    return kernel


def _schedule(nodes: Sequence[Any]) -> list[Any]:
    """The nodes that the outputs depend on, but the arguments, in the order in which they run."""
    index = {node.name: number for number, node in enumerate(nodes)}
    needs = [[index[name.rpartition(":")[0]] for name in node.input if name] for node in nodes]
    wanted: set[int] = set()
    waiting = [number for number, node in enumerate(nodes) if node.type == "NetOutput"]
    while waiting:
        number = waiting.pop()
        if number not in wanted:
            wanted.add(number)
            waiting += needs[number]
    wanted -= {number for number, node in enumerate(nodes) if node.type == "Data"}
    sorter = TopologicalSorter({number: wanted.intersection(needs[number]) for number in wanted})
    sorter.prepare()
    order: list[Any] = []
    ready: list[int] = []
    while sorter.is_active():
        ready = sorted((*ready, *sorter.get_ready()))
        order.append(nodes[ready[-1]])
        sorter.done(ready.pop())
    return order


def _bind(description: Any, value: Tensor, symbols: dict[str, int]) -> None:
    """Gives the symbols that torchair notes for an argument the values that they have."""
    meta = description.attr["_meta"].s.decode()
    if noted := _SIZES.search(meta):
        symbols.update(zip(noted[1].replace(" ", "").split(","), value.shape, strict=False))
    elif value.numel() == 1 and not value.is_floating_point():
        symbols[meta.rpartition("(")[2].partition(")")[0]] = int(value)


def _shape(description: Any, symbols: dict[str, int]) -> Sequence[int]:
    """The sizes of an output, which torchair notes as expressions of symbols."""
    noted = _SIZES.search(description.attr["_meta"].s.decode())
    if noted is None:  # of an output written in place, which has its input's shape
        return list(description.shape.dim)
    try:
        sizes: Sequence[int] = eval(f"[{noted[1]}]", {"__builtins__": {}}, symbols)
    except (NameError, SyntaxError, TypeError, ZeroDivisionError) as error:
        raise ValueError(
            f"sizes '{noted[1]}' cannot be computed from the inputs: {error}"
        ) from None
    return sizes


def _constant(value: Any) -> Tensor:
    dtype, shape = torch_type(value.desc.dtype), list(value.desc.shape.dim)
    if not value.data:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.frombuffer(bytearray(value.data), dtype=dtype).view(shape)


def _value(attribute: Any) -> Any:
    """An attribute of an operator of the engine."""
    field = attribute.WhichOneof("value")
    value = getattr(attribute, field)
    return list(value.i) or list(value.dt) if field == "list" else value


def _argument(tensor: Tensor) -> Tensor:
    """An argument's memory, as nodes see it; for a matrix in FRACTAL_NZ, a copy in plain order."""
    if tensor.is_cpu:
        return tensor
    if torch_npu.get_npu_format(tensor) != _FRACTAL_NZ:
        return view(tensor.data_ptr(), tensor.shape, tensor.dtype)
    if tensor.dim() != 2:
        raise ValueError("only matrices can be in FRACTAL_NZ")
    rows, columns = tensor.shape
    tile = 32 // tensor.itemsize
    sizes = (-(-columns // tile), -(-rows // 16), 16, tile)
    tiles = view(tensor.untyped_storage().data_ptr(), sizes, tensor.dtype)
    return on_device(tiles.permute(1, 2, 0, 3).flatten(2, 3).flatten(0, 1)[:rows, :columns])
