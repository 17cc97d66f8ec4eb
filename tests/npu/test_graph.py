"""Ops in graphs, with every kind of kernel: what runs, and what is refused."""

from __future__ import annotations

import pytest
from ops import KERNELS_OF_OPS, ONE_OF_KERNELS_OF_OPS, OPS
from worker import Start, Worker


@pytest.mark.parametrize(("kernels", "op"), KERNELS_OF_OPS)
def test_torchair_runs_every_sample(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.compiles", op, "torchair", False) >= 4


@pytest.mark.parametrize(("kernels", "op"), KERNELS_OF_OPS)
def test_torchair_runs_it_with_symbolic_sizes(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.compiles", op, "torchair", True) >= 2


def test_a_symbolic_size_that_is_an_attribute_is_that_of_the_call(start: Start) -> None:
    # Each sample has another num_seqs, an attribute of AdvanceStep.
    assert start("stock").run("graph.one_function_takes", "npu_advance_step_flashattn") >= 4


# It calls eager kernels. Captured graphs, below, are of every kernel.
@pytest.mark.parametrize(("kernels", "op"), ONE_OF_KERNELS_OF_OPS)
def test_npugraph_ex_runs_it(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.compiles", op, "npugraph_ex", False) >= 2


@pytest.mark.parametrize("op", OPS)
def test_a_captured_graph_takes_new_values_and_fills_caches(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.replays", op) >= 4


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_graph_refuses_the_dtypes_that_eager_mode_refuses(graph_npu: Worker, dtype: str) -> None:
    message = graph_npu.run("graph.refuses_dtype", dtype)
    assert "add_custom: argument 'self' must be float16, bfloat16, float32 or int32" in message
    assert f"got {dtype}" in message


def test_a_graph_cannot_return_the_log_sum_exp(graph_npu: Worker) -> None:
    message = graph_npu.run("graph.refuses_log_sum_exp")
    assert "argument 'return_softmax_lse' must be False on an NPU" in message


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


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ("index-size-64", "'index_k_cache' must have rows of size 128, got 64"),
        ("index-heads-72", "'w_idx_proj' must have at most 64 columns"),
    ],
)
def test_an_indexer_that_cann_s_own_does_not_take_is_refused_in_the_fused_op_s_words(
    start: Start, sample: str, reason: str
) -> None:
    op = "npu_sparse_attention_pto"
    message = start("stock").run("graph.refuses_sample", op, sample)
    assert f"{op}: argument {reason}" in message
    assert "a limit of aclnnLightningIndexer, which CANN ships" in message
