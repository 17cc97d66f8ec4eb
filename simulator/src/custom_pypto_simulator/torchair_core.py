"""What torchair imports as `torchair.core._torchair`: its C++ core, which hands graphs to GE.

Here a graph runs in Python, when torchair calls. What needs torchair is imported by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    from .graph_engine import Graph

_Named = list[tuple[str, str]]
_Result = TypeVar("_Result")


def install() -> None:
    """Lets torchair import this module instead of its core."""
    sys.modules["torchair.core._torchair"] = sys.modules[__name__]
    # Imported together with the core; of its functions none is emulated.
    executor = "torchair.core._npu_graph_executor"
    sys.modules[executor] = ModuleType(executor)


def _do_nothing(*_: object) -> None: ...


class TorchNpuGraphBase:
    """A graph, as torchair loads, compiles and runs it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._graph: Graph | None = None

    def load(self, serialised: bytes, *_: object) -> None:
        """Reads a graph. Raises RuntimeError when an operator of it is not emulated."""
        from .graph_engine import Graph

        self._graph = _guarded(Graph, serialised)

    # No memory is planned, and a graph is complete once it is loaded.
    set_hint_shape = compile = _do_nothing

    def run(
        self, call: tuple[Sequence[Tensor], Sequence[Tensor | None], object]
    ) -> Sequence[Tensor]:
        """Computes the outputs, of which some are assigned. Raises RuntimeError."""
        inputs, assigned, _ = call
        assert self._graph is not None
        return _guarded(self._graph.run, inputs, assigned)


def _guarded(function: Callable[..., _Result], *arguments: object) -> _Result:
    try:
        return function(*arguments)
    except Exception as error:
        raise RuntimeError(f"graph engine: {error}") from error


def get_registered_ir_def(type_: str) -> tuple[str, _Named, _Named, _Named]:
    """The IR of an op type: of a simulated kernel, its parameters.

    The engine's own operators are known by name only.
    """
    from . import graph_kernels, graph_operators

    places: tuple[_Named, _Named, _Named] = ([], [], [])
    kernel = graph_kernels.find(type_)
    if kernel is None:
        return ("SUCCESS" if type_ in graph_operators.OPERATORS else "ERROR", *places)
    for parameter in kernel.parameters:
        for place, kind in parameter.in_ir:
            places[place].append((parameter.name, kind))
    return ("SUCCESS", *places)


def check_cann_compat(*_: object) -> str:
    """Why CANN has no such operator; the IR of built-in operators is not emulated."""
    return ""


InitializeGraphEngine = FinalizeGraphEngine = SetDebugLogPath = _do_nothing


class _Names:
    def __getattr__(self, name: str) -> str:
        return name


TorchDataType = _Names()
"""Types of tensors that are sent to other machines, which is not emulated."""
