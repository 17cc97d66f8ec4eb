"""The converter, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples

MODULES = ("custom_pypto_lightning_indexer_prolog.converter", "custom_pypto.core.ge_steps")
FUSED = "LightningIndexerPrologPto"


class Graph:
    """Records the nodes made, and knows which op types are registered."""

    def __init__(self) -> None:
        self.registered = {FUSED}
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
        self.nodes.append((op_type, inputs, attrs or {}))
        made = [
            [Node(f"{o[0]}{i}", op_type) for i in range(o[1])]
            if isinstance(o, tuple)
            else Node(o, op_type)
            for o in outputs
        ]
        if isinstance(outputs[0], tuple):
            return made[0]
        return tuple(made) if len(made) > 1 else made[0]

    def of_type(self, op_type: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(inputs, attrs) for each, inputs, attrs in self.nodes if each == op_type]


class Node(str):
    """An output of a node, known by its name."""

    op_type: str

    def __new__(cls, name: str, op_type: str) -> Node:
        made = super().__new__(cls, name)
        made.op_type = op_type
        return made

    def set_meta(self, meta: torch.Tensor) -> None:
        self.meta = meta


class Argument:
    """A tensor as a converter sees it; shown by its name."""

    def __init__(self, name: str, given: torch.Tensor) -> None:
        self.name = name
        self.meta = given.to("meta")
        self.symsize = tuple(given.shape)
        self.rank = given.dim()
        self.dtype = str(given.dtype)

    def __repr__(self) -> str:
        return self.name


def arguments(sizes: samples.Sizes) -> dict[str, Any]:
    return {
        name: Argument(name, value) if isinstance(value, torch.Tensor) else value
        for name, value in samples.arguments(sizes).items()
    }


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def converter(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    ge: Any = ModuleType("torchair.ge")
    ge.custom_op = graph.custom_op
    ge.Cast = lambda x, *, dst_type: f"{dst_type}({x})"
    ge.Const = lambda values, *, dtype: f"{dtype}({values})"
    ge.Clone = lambda x, *, dependencies: f"{x} after {', '.join(d.op_type for d in dependencies)}"
    ge.DataType = SimpleNamespace(
        DT_FLOAT="float",
        DT_BF16="bf16",
        DT_FLOAT16="fp16",
        DT_INT8="int8",
        DT_INT32="int32",
        DT_INT64="int64",
    )
    ge.attr = SimpleNamespace(Str=str, Int=str, Bool=bool, Float=float)
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = graph
    monkeypatch.setitem(sys.modules, "torchair.core", core)
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    forget()
    yield importlib.import_module(MODULES[0])
    forget()


def forget() -> None:
    """As if they had never been imported; `from . import` looks at the package's attributes."""
    for name in MODULES:
        package, _, module = name.rpartition(".")
        sys.modules.pop(name, None)
        vars(sys.modules[package]).pop(module, None)


def test_becomes_the_registered_type_with_every_attribute(converter: Any, graph: Graph) -> None:
    given = arguments(replace(samples.DEEPSEEK, epsilon=0.125))
    assert converter.convert_prolog(*given.values()) == ("y0", "y1", "y2")
    ((op_type, inputs, attributes),) = graph.nodes
    assert op_type == FUSED
    names = [str(each) for each in inputs["x"]]
    assert names == [*list(given)[:15], "int64(idx_k_cache_index)"]
    assert attributes == {
        "layernorm_epsilon_k": 0.125,
        "layout_query": "TND",
        "layout_key": "PA_BSND",
    }


def test_a_layout_of_none_is_the_default(converter: Any, graph: Graph) -> None:
    given = arguments(samples.DEEPSEEK)
    converter.convert_prolog(**given, layout_query=None, layout_key=None)
    ((_, _, attributes),) = graph.nodes
    assert (attributes["layout_query"], attributes["layout_key"]) == ("TND", "PA_BSND")


@pytest.mark.parametrize("registered", [True, False])
def test_becomes_steps_where_the_type_is_not_there_or_made_for_other_sizes(
    converter: Any, graph: Graph, registered: bool
) -> None:
    sizes = samples.FEW_HEADS if registered else samples.DEEPSEEK
    graph.registered = {FUSED} if registered else set()
    converter.convert_prolog(**arguments(replace(sizes, epsilon=0.125)))
    assert not graph.of_type(FUSED)
    ((_, attributes),) = graph.of_type("LayerNormV4")
    assert attributes == {"epsilon": 0.125}
    ((inputs, attributes),) = graph.of_type("QuantBatchMatmulV3")
    assert (str(inputs["x1"]), str(inputs["x2"])) == ("q_norm", "wq_b")
    assert attributes == {"dtype": "bf16", "transpose_x1": False, "transpose_x2": False}


def test_the_last_node_writes_the_larger_cache_after_the_other(
    converter: Any, graph: Graph
) -> None:
    graph.registered = set()
    converter.convert_prolog(**arguments(samples.SMALL))
    (scales, _), (keys, _) = graph.of_type("ScatterNdUpdate")
    assert (str(scales["var"]), str(keys["var"])) == ("idx_k_scale_cache", "idx_k_cache")
    assert graph.nodes[-1][1] is keys
    clones = [inputs for op, inputs, _ in graph.nodes if "after ScatterNdUpdate" in str(inputs)]
    assert clones
