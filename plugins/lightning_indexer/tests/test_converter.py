"""The converters, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

MODULES = (
    "custom_pypto_lightning_indexer.converter",
    "custom_pypto_lightning_indexer.values_converter",
    "custom_pypto.core.ge_steps",
)

Convert = Callable[..., Any]


class Graph:
    """Records the nodes made, and knows which op types are registered."""

    def __init__(self) -> None:
        self.registered = {
            *("LightningIndexerPto", "LightningIndexer", "QuantLightningIndexer", "Minimum"),
        }
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
    ge.Const = lambda values, *, dtype: f"{dtype}({values})"
    ge.DataType = SimpleNamespace(DT_FLOAT="float32", DT_INT32="int32", DT_INT64="int64")
    ge.attr = SimpleNamespace(Str=str, Int=int, Bool=bool)
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = graph
    monkeypatch.setitem(sys.modules, "torchair.core", core)
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    forget()
    yield importlib.import_module(MODULES[0]).convert_lightning_indexer
    forget()


def forget() -> None:
    """As if they had never been imported; `from . import` looks at the package's attributes."""
    for name in MODULES:
        package, _, module = name.rpartition(".")
        sys.modules.pop(name, None)
        vars(sys.modules[package]).pop(module, None)


class Named(str):
    """A tensor as a converter sees it, known by its name."""

    symsize: tuple[int, ...]
    meta: torch.Tensor

    @property
    def dtype(self) -> torch.dtype:
        return self.meta.dtype


def tensor(name: str, *sizes: int, dtype: torch.dtype = torch.bfloat16) -> Named:
    made = Named(name)
    made.symsize = sizes
    made.meta = torch.empty(sizes, dtype=dtype, device="meta")
    return made


QUERY, KEY = tensor("q", 2, 1, 64, 128), tensor("k", 9, 128, 1, 128)
WEIGHTS = tensor("w", 2, 1, 64)
PAGED = {
    "actual_seq_lengths_key": tensor("lengths", 2, dtype=torch.int32),
    "block_table": tensor("table", 2, 9, dtype=torch.int64),
}


def test_becomes_the_custom_type_with_inputs_in_order(convert: Convert, graph: Graph) -> None:
    assert convert(QUERY, KEY, WEIGHTS, **PAGED) == "y0"
    assert graph.nodes == [
        ("LightningIndexerPto", {"x": ["q", "k", "w", "int32(lengths)", "int32(table)"]}, {}),
    ]


def test_becomes_the_stock_type_where_the_custom_one_is_not_registered(
    convert: Convert, graph: Graph
) -> None:
    graph.registered.remove("LightningIndexerPto")
    assert convert(QUERY, KEY, WEIGHTS, **PAGED) == "sparse_indices"
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


def test_the_op_with_values_becomes_the_same_node(convert: Convert, graph: Graph) -> None:
    values_converter = importlib.import_module(MODULES[1])
    given = {"query": QUERY, "key": KEY, "weights": WEIGHTS, "layout_key": "PA_BSND", **PAGED}
    made = values_converter.convert_lightning_indexer(**given)
    assert made == ("sparse_indices", "sparse_values")
    graph.registered.remove("LightningIndexerPto")
    convert(**given)
    of_values, of_indices = graph.nodes
    assert of_values == of_indices


def test_values_are_returned_where_they_are_asked_for(convert: Convert, graph: Graph) -> None:
    del convert  # it has put the stand-in in place
    values_converter = importlib.import_module(MODULES[1])
    values_converter.convert_lightning_indexer(
        QUERY, tensor("k", 2, 130, 1, 128), WEIGHTS, sparse_count=7, return_value=True
    )
    ((op_type, inputs, attrs),) = graph.nodes
    assert op_type == "LightningIndexer"
    assert inputs["block_table"] is None
    assert (attrs["return_values"], attrs["sparse_count"]) == (True, 7)


SUMS = tensor("sums", 2, dtype=torch.int64)
TND = {"query": tensor("q", 5, 64, 128), "weights": tensor("w", 5, 64)}


@pytest.mark.parametrize(
    "changed",
    [
        {"sparse_count": 1024},
        {"sparse_mode": 0},
        {"actual_seq_lengths_query": SUMS},
        {"layout_query": "TND", "actual_seq_lengths_query": SUMS, **TND},
    ],
)
def test_what_the_custom_type_cannot_say_goes_to_the_stock_type(
    convert: Convert, graph: Graph, changed: dict[str, Any]
) -> None:
    convert(**({"query": QUERY, "key": KEY, "weights": WEIGHTS} | PAGED | changed))
    assert [node[0] for node in graph.nodes if node[0] != "Minimum"] == ["LightningIndexer"]


def test_query_lengths_are_clamped_for_the_stock_type(convert: Convert, graph: Graph) -> None:
    lengths = tensor("lengths", 2, dtype=torch.int64)
    given = {"query": tensor("q", 2, 3, 64, 128), "weights": tensor("w", 2, 3, 64)}
    convert(**given, key=KEY, **PAGED, actual_seq_lengths_query=lengths)
    (clamp, indexer) = graph.nodes
    assert clamp == ("Minimum", {"x1": "lengths", "x2": "torch.int64([3])"}, {})
    assert indexer[0] == "LightningIndexer"
    assert indexer[1]["actual_seq_lengths_query"] == "int32(y)"


def test_says_so_when_neither_type_is_registered(convert: Convert, graph: Graph) -> None:
    graph.registered.clear()
    with pytest.raises(RuntimeError, match="No node of LightningIndexer can be made"):
        convert(QUERY, KEY, WEIGHTS, **PAGED)


def test_an_error_in_making_the_node_is_not_taken_for_a_type_that_is_not_registered(
    convert: Convert, graph: Graph
) -> None:
    graph.broken.add("LightningIndexerPto")
    with pytest.raises(RuntimeError, match="No node of LightningIndexerPto can be made"):
        convert(QUERY, KEY, WEIGHTS, **PAGED)


def call(
    *,
    heads: int = 64,
    size: int = 128,
    key_heads: int = 1,
    block_size: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    **options: Any,
) -> dict[str, Any]:
    return {
        "query": tensor("q", 2, 1, heads, size, dtype=dtype),
        "key": tensor("k", 9, block_size, key_heads, size, dtype=dtype),
        "weights": tensor("w", 2, 1, heads, dtype=dtype),
        **PAGED,
        **options,
    }


OUTSIDE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"heads": 65}, "'query' must have at most 64 heads, got 65"),
    ({"size": 64}, "'query' must have heads of size 128, got 64"),
    ({"dtype": torch.float32}, "'query' must be bfloat16 or float16, got float32"),
    ({"key_heads": 2}, "'key' must have 1 head, got 2"),
    ({"block_size": 40}, "multiple of 16 and at most 1024, got 40"),
    ({"block_size": 1040}, "multiple of 16 and at most 1024, got 1040"),
    ({"sparse_count": 2049}, "must be at most 2048, or a multiple of 1024 up to 8192, got 2049"),
    ({"sparse_count": 9216}, "got 9216"),
)


@pytest.mark.parametrize(("changed", "message"), OUTSIDE)
def test_what_the_stock_type_does_not_take_is_refused(
    convert: Convert, graph: Graph, changed: dict[str, Any], message: str
) -> None:
    graph.registered.remove("LightningIndexerPto")
    with pytest.raises(RuntimeError) as caught:
        convert(**call(**changed))
    assert str(caught.value).startswith("npu_lightning_indexer_pto: argument '")
    assert message in str(caught.value)
    assert "LightningIndexerPto of an opp package has none" in str(caught.value)
    assert not graph.nodes


def test_the_custom_type_has_no_such_limits(convert: Convert, graph: Graph) -> None:
    for changed, _ in OUTSIDE:
        if "sparse_count" not in changed:
            convert(**call(**changed))
    assert {node[0] for node in graph.nodes} == {"LightningIndexerPto"}


@pytest.mark.parametrize("count", [1, 2048, 3072, 8192])
def test_every_documented_count_goes_to_the_stock_type(
    convert: Convert, graph: Graph, count: int
) -> None:
    graph.registered.remove("LightningIndexerPto")
    convert(QUERY, KEY, WEIGHTS, **PAGED, sparse_count=count)
    assert graph.nodes[0][2]["sparse_count"] == count


@pytest.fixture
def convert_quant(convert: Convert) -> Convert:
    del convert  # it has imported the module
    module = sys.modules[MODULES[0]]
    found: Convert = module.convert_quant_lightning_indexer
    return found


def quant_call(
    *, heads: int = 64, block_size: int = 128, dtype: torch.dtype = torch.float16, **options: Any
) -> dict[str, Any]:
    return {
        "query": tensor("q", 2, 1, heads, 128, dtype=torch.int8),
        "key": tensor("k", 9, block_size, 1, 128, dtype=torch.int8),
        "weights": tensor("w", 2, 1, heads, dtype=dtype),
        "query_dequant_scale": tensor("qs", 2, 1, heads, dtype=torch.float16),
        "key_dequant_scale": tensor("ks", 9, block_size, 1, dtype=torch.float16),
        "query_quant_mode": 0,
        "key_quant_mode": 0,
        "layout_key": "PA_BSND",
        **PAGED,
        **options,
    }


def test_the_int8_op_becomes_cann_s_type_with_every_attribute(
    convert_quant: Convert, graph: Graph
) -> None:
    lengths = tensor("tokens", 2, dtype=torch.int64)
    given = quant_call(sparse_count=7, sparse_mode=0, actual_seq_lengths_query=lengths)
    assert convert_quant(**given) == "sparse_indices"
    clamp, (op_type, inputs, attrs) = graph.nodes
    assert clamp == ("Minimum", {"x1": "tokens", "x2": "torch.int64([1])"}, {})
    assert op_type == "QuantLightningIndexer"
    assert inputs == {
        "query": "q",
        "key": "k",
        "weights": "w",
        "query_dequant_scale": "qs",
        "key_dequant_scale": "ks",
        "actual_seq_lengths_query": "int32(y)",
        "actual_seq_lengths_key": "int32(lengths)",
        "block_table": "int32(table)",
    }
    assert attrs == {
        "query_quant_mode": 0,
        "key_quant_mode": 0,
        "layout_query": "BSND",
        "layout_key": "PA_BSND",
        "sparse_count": 7,
        "sparse_mode": 0,
        "pre_tokens": 2**63 - 1,
        "next_tokens": 2**63 - 1,
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"heads": 65}, "'query' must have at most 64 heads, got 65"),
        ({"dtype": torch.bfloat16}, "'weights' must be float16, got bfloat16"),
        ({"block_size": 40}, "multiple of 16 and at most 1024, got 40"),
        ({"sparse_count": 2049}, "'sparse_count' must be at most 2048, got 2049"),
    ],
)
def test_what_cann_s_int8_type_does_not_take_is_refused(
    convert_quant: Convert, graph: Graph, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(RuntimeError) as caught:
        convert_quant(**quant_call(**changed))
    assert message in str(caught.value)
    assert "a limit of aclnnQuantLightningIndexer, which CANN ships" in str(caught.value)
    assert not graph.nodes
