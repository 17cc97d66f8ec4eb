"""The quantised indexer prolog: weights in FRACTAL_NZ, and what reaches graphs."""

from __future__ import annotations

import pytest
from worker import Start, Worker

OP = "npu_lightning_indexer_prolog_pto"


def test_the_kernel_of_an_opp_package_is_launched_for_nz_weights(start: Start) -> None:
    assert start("custom").run("indexer_prolog.agrees", "deepseek") == 1


@pytest.mark.parametrize(("kernels", "size"), [("stock", "deepseek"), ("custom", "few-heads")])
def test_it_is_composed_for_nz_weights_elsewhere(start: Start, kernels: str, size: str) -> None:
    assert start(kernels).run("indexer_prolog.agrees", size) > 10


@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [("int8", 48, 64), ("int8", 17, 40), ("bfloat16", 48, 64), ("bfloat16", 17, 40)],
)
def test_matrices_are_cast_to_nz_and_back(
    graph_npu: Worker, dtype: str, rows: int, columns: int
) -> None:
    graph_npu.run("indexer_prolog.casts_there_and_back", dtype, rows, columns)


def test_every_attribute_reaches_the_node_of_an_opp_package(start: Start) -> None:
    nodes = start("custom").run("graph.nodes", OP, "deepseek")
    (fused,) = (node for node in nodes if node["type"] == "LightningIndexerPrologPto")
    assert fused["attributes"] == {
        "layernorm_epsilon_k": 400.0,
        "layout_query": "TND",
        "layout_key": "PA_BSND",
    }
    assert list(fused["inputs"]) == [f"x{index}" for index in range(16)]
    assert fused["outputs"] == ["y0", "y1", "y2"]


def test_the_epsilon_reaches_the_norm_where_there_is_no_opp_package(start: Start) -> None:
    nodes = start("stock").run("graph.nodes", OP, "deepseek")
    (norm,) = (node for node in nodes if node["type"] == "LayerNormV4")
    assert norm["attributes"]["epsilon"] == 400.0
