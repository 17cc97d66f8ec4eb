"""A stand-in for torchair's graph engine, which records the nodes that converters make."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import pytest

_NAMES = {"bfloat16": "bf16", "float32": "float"}
"""GE's names of types, in lower case, where torch's differ."""


class GraphTensor(str):
    """A tensor as a converter sees it: its name, with the sizes and the dtype of an argument.

    The output of a node has neither until `set_meta`.
    """

    __slots__ = ("meta", "op_type")

    meta: torch.Tensor
    op_type: str
    """The type of the node that gives it; empty for an argument."""

    def __new__(cls, name: str, *sizes: int, dtype: torch.dtype = torch.bfloat16) -> GraphTensor:
        """An argument of a graph."""
        made = cls.of_node(name, "")
        made.set_meta(torch.empty(sizes, dtype=dtype, device="meta"))
        return made

    @classmethod
    def of_node(cls, name: str, op_type: str) -> GraphTensor:
        """An output of a node."""
        made = str.__new__(cls, name)
        made.op_type = op_type
        return made

    def set_meta(self, meta: torch.Tensor) -> None:
        """Give it the sizes and the dtype of `meta`."""
        self.meta = meta

    @property
    def symsize(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.meta.shape)

    @property
    def rank(self) -> int:
        """How many sizes there are."""
        return self.meta.dim()

    @property
    def dtype(self) -> str:
        """Its name in this stand-in's `torchair.ge.DataType`."""
        name = str(self.meta.dtype).removeprefix("torch.")
        return _NAMES.get(name, name)


class Graph:
    """Records the nodes made, and knows which op types the graph engine has."""

    def __init__(self) -> None:
        """Make a graph without nodes, of an engine without op types."""
        self.registered: set[str] = set()
        """Op types that are registered, by `custom_pypto.core.ge_operators`."""
        self.definitions: dict[str, tuple[list[Any], list[Any], list[Any]]] = {}
        """Inputs, outputs and attributes of registered op types, where that matters."""
        self.nodes: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
        """Op type, inputs and attributes of each."""

    def of_type(self, op_type: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Inputs and attributes of the nodes of one type."""
        return [(inputs, attrs) for each, inputs, attrs in self.nodes if each == op_type]

    def get_registered_ir_def(self, op_type: str) -> tuple[str, list[Any], list[Any], list[Any]]:
        """As `torchair.core._torchair` answers."""
        status = "SUCCESS" if op_type in self.registered else "FAILED"
        return (status, *self.definitions.get(op_type, ([], [], [])))

    def custom_op(
        self,
        op_type: str,
        *,
        inputs: Mapping[str, Any],
        outputs: list[Any],
        attrs: Mapping[str, Any] | None = None,
    ) -> Any:
        """As `torchair.ge.custom_op`: one output, or a tuple of them; a list of dynamic ones."""
        self.nodes.append((op_type, inputs, attrs or {}))
        made = [
            [GraphTensor.of_node(f"{each[0]}{i}", op_type) for i in range(each[1])]
            if isinstance(each, tuple)
            else GraphTensor.of_node(each, op_type)
            for each in outputs
        ]
        return tuple(made) if len(made) > 1 else made[0]


class _DataTypes:
    def __getattr__(self, name: str) -> str:
        return name.removeprefix("DT_").lower()


@contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Replace torchair by the stand-in; at the end, forget the modules that imported it."""
    graph = Graph()
    ge: Any = ModuleType("torchair.ge")
    ge.custom_op = graph.custom_op
    ge.Cast = lambda x, *, dst_type: GraphTensor.of_node(f"{dst_type}({x})", "Cast")
    ge.Const = lambda values, *, dtype: GraphTensor.of_node(f"{dtype}({values})", "Const")
    ge.Clone = lambda x, *, dependencies: GraphTensor.of_node(
        f"{x} after {', '.join(each.op_type for each in dependencies)}", "Clone"
    )
    ge.DataType = _DataTypes()
    ge.attr = SimpleNamespace(**dict.fromkeys(("Str", "Int", "Bool", "Float"), lambda value: value))
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = graph
    for module in (torchair, ge, core):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    before = {*sys.modules}
    try:
        yield graph
    finally:
        ours = {id(torchair), id(ge), id(core), *_members(ge), *_members(core), *_members(ge.attr)}
        for name in {*sys.modules} - before:
            if ours & _members(sys.modules[name]):
                del sys.modules[name]
                # `from . import` looks at the package's attributes.
                package, _, child = name.rpartition(".")
                vars(sys.modules.get(package, torchair)).pop(child, None)


def _members(of: object) -> set[int]:
    """The ids of the attributes of `of`; for a bound method, the id of its object."""
    return {
        id(each.__self__ if isinstance(each, MethodType) else each)
        for name, each in vars(of).items()
        if not name.startswith("__")
    }
