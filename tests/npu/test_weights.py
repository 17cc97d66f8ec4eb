"""Weights of the fused op and of the prologs: plain, in NZ order by shape or format, declared."""

import pytest
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32
from worker import RunCode, Start, Worker

HIDDEN = DEEPSEEK_V32.hidden


# In the queue, weights of a form that is converted wait until they are read.
@pytest.mark.parametrize(
    ("form", "queue"),
    [
        *((form, 1) for form in ("plain", "3-D", "private", "declared", "private and declared")),
        *((form, queue) for form in ("plain", "private and declared") for queue in (0, 2)),
    ],
)
def test_weights_in_any_form_give_the_results_of_plain_ones(
    start: Start, kernels: str, form: str, queue: int
) -> None:
    phase_1_runs = start(kernels, queue).run("weights.agrees", form)
    if kernels == "custom":
        # The device brings plain ones into NZ order: one of the six has 16 columns, which is it.
        assert phase_1_runs == (1 + 5 if form == "plain" else 1)


@pytest.mark.parametrize(
    ("form", "dynamic"),
    [("plain", False), ("plain", True), ("3-D", False), ("private", False), ("declared", False)],
)
def test_weights_in_any_form_give_the_results_of_plain_ones_in_a_graph(
    graph_npu: Worker, kernels: str, form: str, dynamic: bool
) -> None:
    types = graph_npu.run("weights.graph_agrees", form, dynamic)
    if kernels == "custom":
        assert "SparseAttentionPto" in types
        # The graph engine knows of private formats.
        assert form == "private" or ("Transpose" in types) is (form == "plain")


def test_a_graph_keeps_the_declaration_that_it_was_made_with(graph_npu: Worker) -> None:
    graph_npu.run("weights.graph_keeps_its_declaration")


def test_plain_weights_that_nz_order_cannot_hold_are_for_the_pieces(start: Start) -> None:
    phase_1_runs, types = start("custom").run("weights.composes", 8)
    assert phase_1_runs > 1 + 5
    assert "SparseAttentionPto" not in types
    assert "SparseFlashAttention" in types


@pytest.mark.parametrize(
    ("kernels", "size", "is_launched"),
    [("custom", "deepseek", True), ("stock", "deepseek", False), ("custom", "few-heads", False)],
)
def test_the_quantised_indexer_prolog_is_launched_for_nz_weights_or_composed(
    start: Start, kernels: str, size: str, is_launched: bool
) -> None:
    counted = start(kernels).run("weights.indexer_prolog_agrees", size)
    assert counted == 1 if is_launched else counted > 10


@pytest.mark.parametrize("hidden", [HIDDEN, 256])
def test_the_mla_prolog_is_launched_for_nz_weights_of_its_sizes_or_composed(
    npu: Worker, hidden: int
) -> None:
    counted = npu.run("weights.mla_prolog_agrees", hidden)
    assert counted == 1 if hidden == HIDDEN else counted > 10


@pytest.mark.parametrize(
    ("kernels", "cann", "is_launched"),
    [
        ("stock", "8.5.0.alpha003", True),
        ("stock", "9.0.0", True),
        ("older", "8.5.0.alpha002", False),
        ("older", "8.3.RC1", False),
        ("older", "unreadable", False),
    ],
)
def test_the_mla_prolog_is_launched_only_if_its_parameters_are_known(
    start: Start, kernels: str, cann: str, is_launched: bool
) -> None:
    counted = start(kernels, cann=cann).run("weights.mla_prolog_agrees", HIDDEN)
    assert counted == 1 if is_launched else counted > 10


CALLS = """
import os, warnings
os.dup2(1, 2)
import torch, torch_npu, torchair, custom_pypto.core
from custom_pypto_sparse_attention import samples
fused = torch.ops.custom_pypto.npu_sparse_attention_pto
compiled = torch.compile(lambda *a: fused(*a), backend=torchair.get_npu_backend(), dynamic=False)
warnings.simplefilter("always")
for function in (CALLED):
    function(*samples.fused_arguments(samples.FRACTAL_SIZES, "npu").values())
torch.npu.synchronize()
"""


def test_plain_weights_are_warned_of_once_in_a_process(run_code: RunCode) -> None:
    printed = run_code("custom", CALLS.replace("CALLED", "compiled, fused, compiled"))
    assert printed.count("do it once, with custom_pypto_sparse_attention.to_nz(weight)") == 1


def test_nothing_is_warned_of_where_no_kernel_wants_nz_weights(run_code: RunCode) -> None:
    assert "to_nz" not in run_code("stock", CALLS.replace("CALLED", "fused, compiled"))
