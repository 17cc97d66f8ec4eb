"""Ops in graphs, with every kind of kernel: what runs, and of which nodes it is made."""

from __future__ import annotations

from typing import Any

import pytest
from ops import OPS
from worker import Start, Worker

ALL_TOKENS = 2**63 - 1


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("op", OPS)
def test_torchair_runs_it(graph_npu: Worker, op: str, dynamic: bool) -> None:
    assert graph_npu.run("graph.compiles", op, "torchair", dynamic) >= 4


@pytest.mark.parametrize("op", OPS)
def test_npugraph_ex_runs_it(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.compiles", op, "npugraph_ex", False) >= 4


@pytest.mark.parametrize("op", OPS)
def test_a_captured_graph_takes_new_values_and_fills_caches(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.replays", op) >= 4


def nodes(npu: Worker, op: str, sample: str) -> dict[str, dict[str, Any]]:
    """The nodes that compute, by type; of several of a type the last."""
    return {node["type"]: node for node in npu.run("graph.nodes", op, sample)}


def arguments(*names: str) -> dict[str, str]:
    """Inputs of these names, from the graph's arguments in their order."""
    return {name: f"argument {index}" for index, name in enumerate(names)}


def test_add_custom_is_the_type_of_the_opp_package(start: Start) -> None:
    assert nodes(start("custom"), "add_custom", "float32") == {
        "AddCustom": {
            "type": "AddCustom",
            "inputs": arguments("x", "y"),
            "outputs": ["z"],
            "attributes": {},
        }
    }


def test_add_custom_is_a_stock_type_without_the_opp_package(start: Start) -> None:
    assert nodes(start("stock"), "add_custom", "float32") == {
        "Add": {
            "type": "Add",
            "inputs": arguments("x1", "x2"),
            "outputs": ["y"],
            "attributes": {},
        }
    }


def test_the_backward_of_add_custom_copies_twice(graph_npu: Worker) -> None:
    types = [
        node["type"] for node in graph_npu.run("graph.nodes", "add_custom_backward", "float32")
    ]
    assert types == ["TensorMove", "TensorMove"]


def test_the_indexer_without_options_is_the_type_of_the_opp_package(start: Start) -> None:
    assert nodes(start("custom"), "npu_lightning_indexer_pto", "published-size") == {
        "LightningIndexerPto": {
            "type": "LightningIndexerPto",
            "inputs": arguments("x0", "x1", "x2", "x3", "x4"),
            "outputs": ["y0"],
            "attributes": {},
        }
    }


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (
            "tnd-paged",
            {"layout_query": "TND", "layout_key": "PA_BSND", "sparse_count": 20, "sparse_mode": 3},
        ),
        (
            "not-causal",
            {
                "layout_query": "BSND",
                "layout_key": "PA_BSND",
                "sparse_count": 100,
                "sparse_mode": 0,
            },
        ),
    ],
)
def test_the_indexer_with_options_passes_them_to_the_stock_type(
    graph_npu: Worker, sample: str, expected: dict[str, Any]
) -> None:
    node = nodes(graph_npu, "npu_lightning_indexer_pto", sample)["LightningIndexer"]
    assert node["attributes"] == {
        **expected,
        "pre_tokens": ALL_TOKENS,
        "next_tokens": ALL_TOKENS,
        "return_values": False,
    }
    assert list(node["inputs"]) == [
        *("query", "key", "weights", "actual_seq_lengths_query", "actual_seq_lengths_key"),
        "block_table",
    ]
    has_query_lengths = node["inputs"]["actual_seq_lengths_query"] is not None
    assert has_query_lengths == (expected["layout_query"] == "TND")


def test_the_fused_op_is_the_type_of_the_opp_package(start: Start) -> None:
    found = nodes(start("custom"), "npu_sparse_attention_pto", "small")
    caches = {"x10", "x11", "x19"}
    assert found["SparseAttentionPto"] == {
        "type": "SparseAttentionPto",
        "inputs": {
            name: "TensorMove" if name in caches else source
            for name, source in arguments(*(f"x{index}" for index in range(20))).items()
        },
        "outputs": ["y0"],
        "attributes": {},
    }


def test_the_fused_op_is_its_pieces_without_the_opp_package(start: Start) -> None:
    found = nodes(start("stock"), "npu_sparse_attention_pto", "deepseek")
    indexer, attention = found["LightningIndexer"], found["SparseFlashAttention"]
    assert indexer["inputs"]["key"] == "ScatterNdUpdate"
    assert indexer["attributes"]["sparse_count"] == 2048
    assert attention["inputs"]["key"] == attention["inputs"]["value"] == "ScatterNdUpdate"
    assert attention["attributes"]["scale_value"] == pytest.approx(576**-0.5)


def test_attention_passes_every_attribute(graph_npu: Worker) -> None:
    node = nodes(graph_npu, "npu_sparse_flash_attention", "2048-positions-not-causal")
    assert node["SparseFlashAttention"]["attributes"] == {
        "scale_value": pytest.approx(576**-0.5),
        "sparse_block_size": 1,
        "layout_query": "BSND",
        "layout_kv": "PA_BSND",
        "sparse_mode": 0,
        "pre_tokens": ALL_TOKENS,
        "next_tokens": ALL_TOKENS,
        "attention_mode": 2,
        "return_softmax_lse": False,
    }


def test_the_mla_prolog_is_a_stock_type_at_the_sizes_that_it_takes(graph_npu: Worker) -> None:
    types = graph_npu.run("graph.runs_the_published_sizes")
    assert "MlaPrologV3" in types
    assert "ScatterNdUpdate" not in types


def test_a_prolog_without_a_type_is_made_of_common_ones(graph_npu: Worker) -> None:
    found = nodes(graph_npu, "npu_indexer_prolog", "small")
    assert {"MatMulV2", "LayerNormV4", "ScatterNdUpdate"} <= set(found)
    assert found["ScatterNdUpdate"]["inputs"]["var"] == "TensorMove"


def test_a_graph_cannot_return_the_log_sum_exp(graph_npu: Worker) -> None:
    message = graph_npu.run("graph.refuses_log_sum_exp")
    assert "argument 'return_softmax_lse' must be False in a GE graph" in message


@pytest.mark.parametrize(
    "op",
    ["npu_lightning_indexer_pto", "npu_sparse_attention_pto", "npu_sparse_flash_attention"],
)
def test_what_cann_s_own_operators_do_not_take_is_refused(start: Start, op: str) -> None:
    messages = start("stock").run("graph.refuses_what_its_nodes_do_not_take", op)
    assert len(messages) == 2
    for message in messages:
        assert f"{op}: argument '" in message
        assert "which CANN ships" in message
