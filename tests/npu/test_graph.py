"""Ops in graphs, with every kind of kernel: what runs, by which nodes, and what is refused."""

import pytest
from ops import IN_GRAPHS, KERNELS_OF_OPS, ONE_OF_KERNELS_OF_OPS, WITHOUT_OPERATOR
from worker import Start, Worker

FUSED, ATTENTION = "npu_sparse_attention_pto", "npu_sparse_flash_attention"
INDEXER = "npu_lightning_indexer_pto"


@pytest.mark.parametrize(("kernels", "op"), IN_GRAPHS)
def test_torchair_runs_samples_of_each_kind(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("samples.passes", "graph", op) >= 3


# It calls eager kernels. Captured graphs, below, are of every kernel.
@pytest.mark.parametrize(("kernels", "op"), ONE_OF_KERNELS_OF_OPS)
def test_npugraph_ex_runs_it(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("samples.passes", "npugraph_ex", op) == 1


@pytest.mark.parametrize(("kernels", "op"), KERNELS_OF_OPS)
def test_a_captured_graph_takes_new_values_and_fills_caches(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("samples.passes", "capture", op) >= 2


# The simulated kernels refuse an input, an attribute and an order of nodes that is wrong, and the
# tests above compare results. Below is what those do not show.
TYPES = [
    ("custom", "add_custom", "float32", "AddCustom"),
    ("stock", "add_custom", "float32", ""),
    ("custom", INDEXER, "published-size", "LightningIndexerPto"),
    ("custom", INDEXER, "not-causal", "LightningIndexer"),
    ("custom", INDEXER, "tnd-paged", "LightningIndexer"),
    ("custom", INDEXER, "bsnd-prefix-sums", "LightningIndexer Minimum"),
    ("stock", INDEXER, "int64-lengths", "LightningIndexer"),
    ("stock", "npu_quant_lightning_indexer", "not-causal", "QuantLightningIndexer"),
    ("stock", ATTENTION, "deepseek-tnd", "SparseFlashAttention"),
    ("stock", ATTENTION, "prefix-sums", "Minimum SparseFlashAttention"),
    ("custom", FUSED, "wide", "SparseAttentionPto"),
    ("stock", FUSED, "deepseek", "BatchMatMulV2 LightningIndexer SparseFlashAttention"),
    ("stock", FUSED, "published", "LightningIndexer MlaPrologV3 SparseFlashAttention"),
    ("older", FUSED, "published", "BatchMatMulV2 LightningIndexer SparseFlashAttention"),
    ("stock", "npu_mla_prolog", "published", "MlaPrologV3"),
    ("older", "npu_mla_prolog", "published", "BatchMatMulV2"),
    ("custom", "npu_lightning_indexer_prolog_pto", "deepseek", "LightningIndexerPrologPto"),
    ("stock", "npu_lightning_indexer_prolog_pto", "deepseek", "QuantBatchMatmulV3"),
]
"""Kernels, an op, a sample, and which types of this column the graph has."""
TELLING = {each for _, _, _, types in TYPES for each in types.split()}


@pytest.mark.parametrize(("kernels", "op", "sample", "types"), TYPES)
def test_a_graph_has_the_most_special_types_that_take_the_call(
    start: Start, kernels: str, op: str, sample: str, types: str
) -> None:
    cann = "8.3.RC1" if kernels == "older" else "8.5.0"
    made = start(kernels, cann=cann).run("graph.types", op, sample)
    assert TELLING.intersection(made) == {*types.split()}


@pytest.mark.parametrize(
    ("op", "sample", "caches"),
    [
        ("npu_mla_prolog", "published", []),
        # Two nodes write, and torchair looks at the last one only.
        ("npu_mla_prolog", "small", [11]),
        ("npu_indexer_prolog", "small", []),
        # The last node writes none, or none that its IR names.
        (FUSED, "published", [10, 11, 19]),
    ],
)
def test_a_graph_copies_no_cache_that_its_last_node_writes(
    graph_npu: Worker, op: str, sample: str, caches: list[int]
) -> None:
    assert graph_npu.run("graph.copied_arguments", op, sample) == caches


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_dtype_that_the_kernel_does_not_take_is_refused(graph_npu: Worker, dtype: str) -> None:
    messages = graph_npu.run("graph.refuses_dtype", dtype)
    assert len(messages) == 2
    for message in messages:
        assert "add_custom: argument 'self' must be float16, bfloat16, float32 or int32" in message
        assert f"got {dtype}" in message


@pytest.mark.parametrize(
    ("op", "sample", "reason"),
    [
        ("npu_grouped_matmul", "bfloat16_int4", "in a graph of torchair's graph engine, group"),
        (INDEXER, "key-heads", "argument 'query' must have heads of size 128"),
        (ATTENTION, "log-sum-exp", "argument 'return_softmax_lse' must be False on an NPU"),
        # The fused op's words for a limit of the indexer that is a part of it.
        (FUSED, "index-heads-72", "argument 'w_idx_proj' must have at most 64 columns"),
        *((op, "", "torchair's graph engine has no op") for op in sorted(WITHOUT_OPERATOR)),
    ],
)
def test_what_cann_s_own_operators_do_not_take_is_refused(
    start: Start, op: str, sample: str, reason: str
) -> None:
    assert f"{op}: {reason}" in start("stock").run("graph.refuses", op, sample)
