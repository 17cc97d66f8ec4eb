"""What the converters choose and refuse, against a stand-in for torchair's public functions.

tests/npu/test_graph.py runs the nodes of every sample in graphs of torchair itself.
"""

import importlib
from typing import Any

import pytest
import torch
from custom_pypto_testing import Graph, GraphTensor


@pytest.fixture
def graph(torchair_graph: Graph) -> Graph:
    """A graph engine without the type of an opp package."""
    torchair_graph.registered = {"LightningIndexer"}
    return torchair_graph


@pytest.fixture
def converter(graph: Graph) -> Any:
    del graph  # it is what the converter shall see
    return importlib.import_module("custom_pypto_lightning_indexer.converter")


def call(
    *,
    heads: int = 64,
    size: int = 128,
    key_heads: int = 1,
    block_size: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    weights_dtype: torch.dtype | None = None,
    **options: Any,
) -> dict[str, Any]:
    return {
        "query": GraphTensor("q", 2, 1, heads, size, dtype=dtype),
        "key": GraphTensor("k", 9, block_size, key_heads, size, dtype=dtype),
        "weights": GraphTensor("w", 2, 1, heads, dtype=weights_dtype or dtype),
        "actual_seq_lengths_key": GraphTensor("lengths", 2, dtype=torch.int32),
        "block_table": GraphTensor("table", 2, 9, dtype=torch.int64),
        **options,
    }


def quant_call(
    *, heads: int = 64, block_size: int = 128, dtype: torch.dtype = torch.float16, **options: Any
) -> dict[str, Any]:
    return {
        **call(heads=heads, block_size=block_size, dtype=torch.int8, weights_dtype=dtype),
        "query_dequant_scale": GraphTensor("qs", 2, 1, heads, dtype=torch.float16),
        "key_dequant_scale": GraphTensor("ks", 9, block_size, 1, dtype=torch.float16),
        "query_quant_mode": 0,
        "key_quant_mode": 0,
        "layout_key": "PA_BSND",
        **options,
    }


OP, QUANT = "lightning_indexer", "quant_lightning_indexer"
HEADS = "'query' must have at most 64 heads, got 65"
BLOCKS = "multiple of 16 and at most 1024, got"
OUTSIDE: list[tuple[str, dict[str, Any], str]] = [
    (OP, {"heads": 65}, HEADS),
    (OP, {"size": 64}, "'query' must have heads of size 128, got 64"),
    (OP, {"dtype": torch.float32}, "'query' must be bfloat16 or float16, got float32"),
    (OP, {"key_heads": 2}, "'key' must have 1 head, got 2"),
    (OP, {"block_size": 40}, f"{BLOCKS} 40"),
    (OP, {"sparse_count": 2049}, "at most 2048, or a multiple of 1024 up to 8192, got 2049"),
    (QUANT, {"heads": 65}, HEADS),
    (QUANT, {"dtype": torch.bfloat16}, "'weights' must be float16, got bfloat16"),
    (QUANT, {"block_size": 40}, f"{BLOCKS} 40"),
    (QUANT, {"sparse_count": 2049}, "'sparse_count' must be at most 2048, got 2049"),
]
LIMIT_OF = {
    OP: "LightningIndexerPto of an opp package has none",
    QUANT: "a limit of aclnnQuantLightningIndexer, which CANN ships",
}


@pytest.mark.parametrize(("op", "changed", "message"), OUTSIDE)
def test_what_the_stock_type_does_not_take_is_refused(
    converter: Any, graph: Graph, op: str, changed: dict[str, Any], message: str
) -> None:
    make = {OP: call, QUANT: quant_call}[op]
    with pytest.raises(RuntimeError) as caught:
        getattr(converter, f"convert_{op}")(**make(**changed))
    assert str(caught.value).startswith(f"npu_{op}{'_pto' * (op == OP)}: argument '")
    assert message in str(caught.value)
    assert LIMIT_OF[op] in str(caught.value)
    assert not graph.nodes


@pytest.mark.parametrize("count", [1, 2048, 3072, 8192])
def test_every_documented_count_goes_to_the_stock_type(
    converter: Any, graph: Graph, count: int
) -> None:
    converter.convert_lightning_indexer(**call(sparse_count=count))
    assert graph.nodes[0][2]["sparse_count"] == count
