"""The converters, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from custom_pypto_testing import Graph, GraphTensor

CONVERTER = "custom_pypto_lightning_indexer.converter"

Convert = Callable[..., Any]


@pytest.fixture
def graph(torchair_graph: Graph) -> Graph:
    torchair_graph.registered = {"LightningIndexerPto", "LightningIndexer"}
    return torchair_graph


@pytest.fixture
def convert(graph: Graph) -> Convert:
    del graph  # it is what the converter shall see
    found: Convert = importlib.import_module(CONVERTER).convert_lightning_indexer
    return found


QUERY, KEY = GraphTensor("q", 2, 1, 64, 128), GraphTensor("k", 9, 128, 1, 128)
WEIGHTS = GraphTensor("w", 2, 1, 64)
PAGED = {
    "actual_seq_lengths_key": GraphTensor("lengths", 2, dtype=torch.int32),
    "block_table": GraphTensor("table", 2, 9, dtype=torch.int64),
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
    with_values = importlib.import_module(CONVERTER).convert_lightning_indexer_with_values
    given = {"query": QUERY, "key": KEY, "weights": WEIGHTS, "layout_key": "PA_BSND", **PAGED}
    made = with_values(**given)
    assert made == ("sparse_indices", "sparse_values")
    graph.registered.remove("LightningIndexerPto")
    convert(**given)
    of_values, of_indices = graph.nodes
    assert of_values == of_indices


def test_values_are_returned_where_they_are_asked_for(convert: Convert, graph: Graph) -> None:
    del convert  # it has put the stand-in in place
    with_values = importlib.import_module(CONVERTER).convert_lightning_indexer_with_values
    with_values(QUERY, GraphTensor("k", 2, 130, 1, 128), WEIGHTS, sparse_count=7, return_value=True)
    ((op_type, inputs, attrs),) = graph.nodes
    assert op_type == "LightningIndexer"
    assert inputs["block_table"] is None
    assert (attrs["return_values"], attrs["sparse_count"]) == (True, 7)


SUMS = GraphTensor("sums", 2, dtype=torch.int64)
TND = {"query": GraphTensor("q", 5, 64, 128), "weights": GraphTensor("w", 5, 64)}


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
    lengths = GraphTensor("lengths", 2, dtype=torch.int64)
    given = {"query": GraphTensor("q", 2, 3, 64, 128), "weights": GraphTensor("w", 2, 3, 64)}
    convert(**given, key=KEY, **PAGED, actual_seq_lengths_query=lengths)
    (clamp, indexer) = graph.nodes
    assert clamp == ("Minimum", {"x1": "lengths", "x2": "int64([3])"}, {})
    assert indexer[0] == "LightningIndexer"
    assert indexer[1]["actual_seq_lengths_query"] == "int32(y)"


def test_says_so_when_neither_type_is_registered(convert: Convert, graph: Graph) -> None:
    graph.registered.clear()
    graph.broken.add("LightningIndexer")
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
        "query": GraphTensor("q", 2, 1, heads, size, dtype=dtype),
        "key": GraphTensor("k", 9, block_size, key_heads, size, dtype=dtype),
        "weights": GraphTensor("w", 2, 1, heads, dtype=dtype),
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
    found: Convert = importlib.import_module(CONVERTER).convert_quant_lightning_indexer
    return found


def quant_call(
    *, heads: int = 64, block_size: int = 128, dtype: torch.dtype = torch.float16, **options: Any
) -> dict[str, Any]:
    return {
        "query": GraphTensor("q", 2, 1, heads, 128, dtype=torch.int8),
        "key": GraphTensor("k", 9, block_size, 1, 128, dtype=torch.int8),
        "weights": GraphTensor("w", 2, 1, heads, dtype=dtype),
        "query_dequant_scale": GraphTensor("qs", 2, 1, heads, dtype=torch.float16),
        "key_dequant_scale": GraphTensor("ks", 9, block_size, 1, dtype=torch.float16),
        "query_quant_mode": 0,
        "key_quant_mode": 0,
        "layout_key": "PA_BSND",
        **PAGED,
        **options,
    }


def test_the_int8_op_becomes_cann_s_type_with_every_attribute(
    convert_quant: Convert, graph: Graph
) -> None:
    lengths = GraphTensor("tokens", 2, dtype=torch.int64)
    given = quant_call(sparse_count=7, sparse_mode=0, actual_seq_lengths_query=lengths)
    assert convert_quant(**given) == "sparse_indices"
    clamp, (op_type, inputs, attrs) = graph.nodes
    assert clamp == ("Minimum", {"x1": "tokens", "x2": "int64([1])"}, {})
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
