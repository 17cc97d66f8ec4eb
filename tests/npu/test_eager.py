"""Ops called eagerly on NPU tensors, with every kind of kernel and setting of the task queue."""

import pytest
from ops import COMPOSED, DIRECT, KERNELS_OF_OPS, ONE_OF_KERNELS_OF_OPS
from worker import Start, Worker

FUSED, ATTENTION = "npu_sparse_attention_pto", "npu_sparse_flash_attention"


@pytest.mark.parametrize(("kernels", "op"), KERNELS_OF_OPS)
def test_agrees_with_the_reference(npu: Worker, op: str) -> None:
    assert npu.run("samples.passes", "results", op) >= 2


# It checks what is registered; the test above compares each kernel with the fake.
@pytest.mark.parametrize(("kernels", "op"), ONE_OF_KERNELS_OF_OPS)
def test_passes_opcheck(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("samples.passes", "operator", op) == 1


# Scenarios whose own checks are the test, and their arguments: once, and in each of the queues.
SCENARIOS = [
    ("eager.gradients_agree_with_the_cpu", f"{ATTENTION}_grad"),
    ("eager.gradients_agree_with_the_cpu", "npu_lightning_indexer_grad"),
    ("eager.attends_to_nothing", "deepseek-bsnd"),
    ("eager.attends_to_nothing", "log-sum-exp"),
    ("eager.has_gradients_of_nothing", "npu_lightning_indexer_grad", "bsnd-key-heads"),
    ("eager.has_gradients_of_nothing", "npu_lightning_indexer_grad", "tnd"),
    ("samples.passes_with", "strides", FUSED, "deepseek"),
    ("samples.passes_with", "strides", "npu_lightning_indexer_pto", "published-size"),
]
IN_EACH_QUEUE = [
    ("eager.attends_before_rows_of_padding",),
    ("eager.has_gradients_of_nothing", f"{ATTENTION}_grad", "odd-bsnd"),
    ("eager.has_gradients_of_nothing", f"{ATTENTION}_grad", "deepseek-bsnd-bfloat16"),
    ("samples.passes_with", "strides", ATTENTION, "deepseek-bsnd"),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids="-".join)
def test_holds(graph_npu: Worker, scenario: tuple[str, ...]) -> None:
    graph_npu.run(*scenario)


@pytest.mark.parametrize("scenario", IN_EACH_QUEUE, ids="-".join)
def test_holds_in_each_queue(npu: Worker, scenario: tuple[str, ...]) -> None:
    npu.run(*scenario)


@pytest.mark.parametrize(("kernels", "op"), KERNELS_OF_OPS)
def test_a_launch_that_equals_an_earlier_one_skips_phase_1(
    start: Start, kernels: str, op: str
) -> None:
    cached = start(kernels, is_faster=True).run("eager.launches_again", op)
    uncached = start(kernels).run("eager.launches_again", op)
    if op in COMPOSED or (kernels == "custom" and op in DIRECT):
        assert cached == uncached
    else:
        assert cached < uncached
    if op == "add_custom":
        assert cached == 0


LIMITED = {
    "npu_lightning_indexer": "aclnnLightningIndexerPto of an opp package has none",
    "npu_lightning_indexer_grad": "a CPU has none",
    "npu_lightning_indexer_pto": "aclnnLightningIndexerPto of an opp package has none",
    "npu_quant_lightning_indexer": "a limit of aclnnQuantLightningIndexer, which CANN ships",
    "npu_sparse_attention_pto": "where an opp package has aclnnSparseAttentionPto",
    "npu_sparse_flash_attention": "where an opp package has aclnnSparseAttentionPto",
    "npu_sparse_flash_attention_grad": "a CPU has none",
}
"""Ops for which CANN's own kernels have limits; what the errors say is the way out."""


@pytest.mark.parametrize("op", LIMITED)
def test_what_cann_s_own_kernel_does_not_take_is_refused(graph_npu: Worker, op: str) -> None:
    messages = graph_npu.run("eager.refuses_what_its_kernels_do_not_take", op)
    assert messages
    for message in messages.values():
        assert message.startswith(f"{op}: argument '")
        assert "a limit of aclnn" in message
        assert LIMITED[op] in message


def test_each_limit_is_named(start: Start) -> None:
    run = start("stock").run
    indexer = run("eager.refuses_what_its_kernels_do_not_take", "npu_lightning_indexer_pto")
    assert "'query' must have heads of size 128, got 7 in" in indexer["odd-sizes"]
    assert "'query' must be bfloat16 or float16, got float32" in indexer["odd-sizes-float32"]
    assert "'key' must have 1 head, got 2 in" in indexer["bsnd-key-heads"]
    fused = run("eager.refuses_what_its_kernels_do_not_take", "npu_sparse_attention_pto")
    assert "'kv_cache' must have rows of size 512, got 64 in" in fused["small"]
    assert "'kv_cache' must be bfloat16 or float16, got float32" in fused["small-fp32"]
    assert "'w_uk' must have 1, 2, 4, 8, 16, 32, 64 or 128 heads, got 3 in" in fused["odd"]
    assert "'index_k_cache' must have rows of size 128, got 64 in" in fused["index-size-64"]
    assert "'w_idx_proj' must have at most 64 columns" in fused["index-heads-72"]


def test_strided_caches_are_for_the_pieces_with_their_limits(start: Start) -> None:
    npu = start("custom")
    # An opp package's indexer has no limits.
    npu.run("samples.passes_with", "strides", FUSED, "index-size-64")
    message = npu.run("eager.refuses_strided_caches", "wide")
    assert message.startswith(f"{FUSED}: argument 'w_uk' must have 1, 2, 4, 8, 16,")
    assert "where an opp package has aclnnSparseAttentionPto, which is used with cont" in message


def test_refuses_a_gradient_of_sums_over_rotated_parts_alone(graph_npu: Worker) -> None:
    message = graph_npu.run("eager.refuses_a_gradient_of_sums_over_rotated_parts_alone")
    assert "argument 'd_lse' must be None on an NPU" in message
