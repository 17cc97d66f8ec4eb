"""The converter, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Convert = Callable[..., Any]


class Graph:
    """Records the nodes made, and knows which op types are registered."""

    def __init__(self) -> None:
        self.registered = {"LightningIndexerPto", "LightningIndexer"}
        self.broken: set[str] = set()
        self.nodes: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def get_registered_ir_def(self, op_type: str) -> tuple[str, list[Any], list[Any], list[Any]]:
        return ("SUCCESS" if op_type in self.registered else "FAILED", [], [], [])

    def custom_op(
        self,
        op_type: str,
        *,
        inputs: dict[str, Any],
        outputs: list[Any],
        attrs: dict[str, Any] | None = None,
    ) -> Any:
        if op_type in self.broken or op_type not in self.registered:
            raise RuntimeError(f"No node of {op_type} can be made.")
        self.nodes.append((op_type, inputs, attrs or {}))
        made = [[f"{o[0]}{i}" for i in range(o[1])] if isinstance(o, tuple) else o for o in outputs]
        return tuple(made) if len(made) > 1 else made[0]


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def convert(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Iterator[Convert]:
    ge: Any = ModuleType("torchair.ge")
    ge.custom_op = graph.custom_op
    ge.Cast = lambda x, *, dst_type: f"{dst_type}({x})"
    ge.DataType = SimpleNamespace(DT_INT32="int32")
    ge.attr = SimpleNamespace(Str=str, Int=int, Bool=bool)
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = graph
    monkeypatch.setitem(sys.modules, "torchair.core", core)
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    name = "custom_pypto_lightning_indexer.converter"
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name).convert_lightning_indexer
    sys.modules.pop(name, None)


PAGED = {"actual_seq_lengths_key": "lengths", "block_table": "table"}


def test_becomes_the_custom_type_with_inputs_in_order(convert: Convert, graph: Graph) -> None:
    assert convert("q", "k", "w", **PAGED) == "y0"
    assert graph.nodes == [
        ("LightningIndexerPto", {"x": ["q", "k", "w", "int32(lengths)", "int32(table)"]}, {}),
    ]


def test_becomes_the_stock_type_where_the_custom_one_is_not_registered(
    convert: Convert, graph: Graph
) -> None:
    graph.registered.remove("LightningIndexerPto")
    assert convert("q", "k", "w", **PAGED) == "sparse_indices"
    ((op_type, inputs, attrs),) = graph.nodes
    assert op_type == "LightningIndexer"
    assert inputs == {
        "query": "q",
        "key": "k",
        "weights": "w",
        "actual_seq_lengths_query": None,
        "actual_seq_lengths_key": "int32(lengths)",
        "block_table": "int32(table)",
    }
    assert attrs == {
        "layout_query": "BSND",
        "layout_key": "PA_BSND",
        "sparse_count": 2048,
        "sparse_mode": 3,
        "pre_tokens": 2**63 - 1,
        "next_tokens": 2**63 - 1,
        "return_values": False,
    }


@pytest.mark.parametrize(
    "option",
    [
        {"sparse_count": 1024},
        {"sparse_mode": 0},
        {"layout_query": "TND", "actual_seq_lengths_query": "sums"},
        {"actual_seq_lengths_query": "lengths"},
    ],
)
def test_what_the_custom_type_cannot_say_goes_to_the_stock_type(
    convert: Convert, graph: Graph, option: dict[str, Any]
) -> None:
    convert("q", "k", "w", **PAGED, **option)
    assert [node[0] for node in graph.nodes] == ["LightningIndexer"]


def test_says_so_when_neither_type_is_registered(convert: Convert, graph: Graph) -> None:
    graph.registered.clear()
    with pytest.raises(RuntimeError, match="No node of LightningIndexer can be made"):
        convert("q", "k", "w", **PAGED)


def test_an_error_in_making_the_node_is_not_taken_for_a_type_that_is_not_registered(
    convert: Convert, graph: Graph
) -> None:
    graph.broken.add("LightningIndexerPto")
    with pytest.raises(RuntimeError, match="No node of LightningIndexerPto can be made"):
        convert("q", "k", "w", **PAGED)
