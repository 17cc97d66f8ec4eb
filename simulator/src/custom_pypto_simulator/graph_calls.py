"""What libge_runner.so asks of the graph engine, as functions of C.

The engine needs torchair, so it is imported when torchair first calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph_engine import Graph

_GE_FAILURE = 500002
_graphs: dict[int, Graph] = {}


def _guarded(function: Callable[..., int]) -> Callable[..., int]:
    """The function, with -1 and CANN's recent error where it raises."""

    def call(*arguments: Any) -> int:
        try:
            return function(*arguments)
        except Exception as error:
            text = f"graph engine: {error}".encode()
            ctypes.CDLL("libascendcl.so").custom_pypto_sim_error(_GE_FAILURE, text)
            return -1

    return call


def _add(number: int, data: int, size: int, summary: int) -> int:
    """Keeps a serialised graph, and tells `summary` its outputs; 1 when its sizes are static."""
    from .graph_engine import Graph

    graph = _graphs[number] = Graph(ctypes.string_at(data, size))
    add_output = ctypes.CDLL("libge_runner.so").custom_pypto_sim_add_output
    for dtype, shape in graph.outputs:
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        add_output(ctypes.c_void_p(summary), dtype, sizes, ctypes.c_size_t(len(shape)))
    return int(graph.is_static)


def _run(number: int, inputs: int, input_count: int, outputs: int, output_count: int) -> int:
    from .graph_engine import Border

    given = (Border * input_count).from_address(inputs) if input_count else ()
    room = (Border * output_count).from_address(outputs) if output_count else ()
    _graphs[number].run([*given], [*room])
    return 0


def _remove(number: int) -> None:
    _graphs.pop(number, None)


def _parameters(type_: bytes, definition: int) -> int:
    """Tells `definition` the IR of an op type: the parameters of its kernel; 1 when there is one.

    The engine's own operators are known by name only.
    """
    from . import graph_kernels, graph_operators

    kernel = graph_kernels.find(type_.decode())
    if kernel is None:
        return int(type_.decode() in graph_operators.OPERATORS)
    add = ctypes.CDLL("libge_runner.so").custom_pypto_sim_add_parameter
    for parameter in kernel.parameters:
        for kind, text in parameter.in_ir:
            add(ctypes.c_void_p(definition), kind, parameter.name.encode(), text.encode())
    return 1


_NUMBER, _POINTER, _SIZE = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t
_ENGINE = (
    ctypes.CFUNCTYPE(ctypes.c_int, _NUMBER, _POINTER, _SIZE, _POINTER)(_guarded(_add)),
    ctypes.CFUNCTYPE(ctypes.c_int, _NUMBER, _POINTER, _SIZE, _POINTER, _SIZE)(_guarded(_run)),
    ctypes.CFUNCTYPE(None, _NUMBER)(_remove),
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, _POINTER)(_guarded(_parameters)),
)
"""The members of `Engine` in engine.h."""


def connect() -> None:
    """Lets libge_runner.so, which is loaded, call the engine."""
    ctypes.CDLL("libge_runner.so").custom_pypto_sim_connect(*_ENGINE)
