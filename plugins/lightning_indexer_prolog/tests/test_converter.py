"""The converter, against a stand-in for torchair's public functions."""

import importlib
from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples
from custom_pypto_testing import Graph, GraphTensor

FUSED = "LightningIndexerPrologPto"


def arguments(sizes: samples.Sizes) -> dict[str, Any]:
    return {
        name: GraphTensor(name, *value.shape, dtype=value.dtype)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in samples.arguments(sizes).items()
    }


@pytest.fixture
def graph(torchair_graph: Graph) -> Graph:
    torchair_graph.registered = {FUSED}
    return torchair_graph


@pytest.fixture
def converter(graph: Graph) -> Any:
    del graph  # it is what the converter shall see
    return importlib.import_module("custom_pypto_lightning_indexer_prolog.converter")


def test_a_layout_of_none_is_the_default(converter: Any, graph: Graph) -> None:
    converter.convert_prolog(**arguments(samples.DEEPSEEK), layout_query=None, layout_key=None)
    ((_, _, attributes),) = graph.nodes
    assert (attributes["layout_query"], attributes["layout_key"]) == ("TND", "PA_BSND")


def test_becomes_steps_where_the_type_is_made_for_other_sizes(converter: Any, graph: Graph) -> None:
    converter.convert_prolog(**arguments(samples.FEW_HEADS))
    assert not graph.of_type(FUSED)
    assert graph.of_type("QuantBatchMatmulV3")


def test_the_last_node_writes_the_larger_cache_after_the_other(
    converter: Any, graph: Graph
) -> None:
    graph.registered = set()
    converter.convert_prolog(**arguments(samples.SMALL))
    (scales, _), (keys, _) = graph.of_type("ScatterNdUpdate")
    assert (str(scales["var"]), str(keys["var"])) == ("idx_k_scale_cache", "idx_k_cache")
    assert graph.nodes[-1][1] is keys
    assert [inputs for op, inputs, _ in graph.nodes if "after ScatterNdUpdate" in str(inputs)]
