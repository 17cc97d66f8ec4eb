"""The fused op's weights: plain, in NZ order by shape or by format, declared to be NZ."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from worker import Start, Worker

FORMS = ["plain", "3-D", "private", "declared", "private and declared"]


@pytest.mark.parametrize("form", FORMS)
def test_weights_in_any_form_give_the_results_of_plain_ones(graph_npu: Worker, form: str) -> None:
    graph_npu.run("weights.agrees", form)


@pytest.mark.parametrize("form", ["plain", "private and declared"])
@pytest.mark.parametrize("queue", [0, 2])
def test_weights_wait_in_the_queue_until_they_are_read(
    start: Start, kernels: str, queue: int, form: str
) -> None:
    start(kernels, queue).run("weights.agrees", form)


@pytest.mark.parametrize("form", ["3-D", "private", "declared", "private and declared"])
def test_nz_weights_are_handed_to_the_custom_kernel_as_they_lie(start: Start, form: str) -> None:
    assert start("custom").run("weights.agrees", form) == 1


def test_plain_weights_are_brought_into_nz_order_by_the_device(start: Start) -> None:
    # One of the six has 16 columns: its order is the same.
    assert start("custom").run("weights.agrees", "plain") == 1 + 5


@pytest.mark.parametrize(
    ("form", "dynamic"),
    [("plain", False), ("plain", True), ("3-D", False), ("private", False), ("declared", False)],
)
def test_weights_in_any_form_give_the_results_of_plain_ones_in_a_graph(
    graph_npu: Worker, form: str, dynamic: bool
) -> None:
    graph_npu.run("weights.graph_agrees", form, dynamic)


@pytest.mark.parametrize(
    ("form", "is_moved"), [("plain", True), ("3-D", False), ("declared", False)]
)
def test_a_graph_brings_plain_weights_alone_into_nz_order(
    start: Start, form: str, is_moved: bool
) -> None:
    types = start("custom").run("weights.graph_agrees", form, False)
    assert "SparseAttentionPto" in types
    assert ("Transpose" in types) is is_moved


def test_a_graph_keeps_the_declaration_that_it_was_made_with(graph_npu: Worker) -> None:
    graph_npu.run("weights.graph_keeps_its_declaration")


DECLARED = "must {} where 2-D weights are declared to hold fractal NZ bytes (CUSTOM_PYPTO_SPARSE_"


@pytest.mark.parametrize(
    ("columns", "dtype", "name", "what"),
    [
        (8, "bfloat16", "w_idx_proj", "have a multiple of 16 columns"),
        (16, "float32", "w_dq", "be bfloat16 or float16"),
    ],
)
def test_declared_weights_that_nz_order_cannot_hold_are_refused(
    graph_npu: Worker, columns: int, dtype: str, name: str, what: str
) -> None:
    messages = graph_npu.run("weights.refuses", columns, dtype)
    assert len(messages) == 2
    for message in messages:
        expected = f"npu_sparse_attention_pto: argument '{name}' {DECLARED.format(what)}"
        assert expected in message


def test_plain_weights_that_nz_order_cannot_hold_are_for_the_pieces(start: Start) -> None:
    phase_1_runs, types = start("custom").run("weights.composes", 8)
    assert phase_1_runs > 1 + 5
    assert "SparseAttentionPto" not in types
    assert "SparseFlashAttention" in types


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


def test_plain_weights_are_warned_of_once_in_a_process(
    run_code: Callable[[str, str], str],
) -> None:
    printed = run_code("custom", CALLS.replace("CALLED", "compiled, fused, compiled"))
    assert printed.count("do it once, with custom_pypto_sparse_attention.to_nz(weight)") == 1


def test_nothing_is_warned_of_where_no_kernel_wants_nz_weights(
    run_code: Callable[[str, str], str],
) -> None:
    assert "to_nz" not in run_code("stock", CALLS.replace("CALLED", "fused, compiled"))
