"""Ops called eagerly on NPU tensors, with every kind of kernel and setting of the task queue."""

from __future__ import annotations

import pytest
from ops import OPS
from worker import Start, Worker

COMPOSED = ("add_custom_backward", "npu_mla_prolog", "npu_indexer_prolog")
"""Ops that call torch's own for these samples, and launch nothing themselves."""


def test_every_op_is_tested(graph_npu: Worker) -> None:
    assert sorted(graph_npu.run("eager.ops")) == sorted(OPS)


@pytest.mark.parametrize("op", OPS)
def test_agrees_with_the_reference(npu: Worker, op: str) -> None:
    assert npu.run("eager.agrees_with_the_reference", op) >= 5


@pytest.mark.parametrize("op", OPS)
def test_passes_opcheck(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("eager.passes_opcheck", op) >= 5


def test_gradients_agree_with_the_cpu(npu: Worker) -> None:
    npu.run("eager.gradients_agree_with_the_cpu")


@pytest.mark.parametrize("op", ["add_custom", "npu_lightning_indexer_pto"])
def test_agrees_with_the_cpu_bit_by_bit(start: Start, queue: int, op: str) -> None:
    start("custom", queue).run("eager.agrees_with_the_cpu_bit_by_bit", op)


@pytest.mark.parametrize("op", OPS)
def test_a_launch_that_equals_an_earlier_one_skips_phase_1(
    start: Start, kernels: str, op: str
) -> None:
    cached = start(kernels).run("eager.launches_again", op)
    uncached = start(kernels, is_cached=False).run("eager.launches_again", op)
    if op in COMPOSED:
        assert cached == uncached
    else:
        assert cached < uncached
    if op == "add_custom":
        assert cached == 0


def test_the_mla_prolog_launches_the_stock_kernel_for_nz_weights(npu: Worker) -> None:
    npu.run("eager.runs_the_mla_prolog_with_nz_weights")


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_a_dtype_that_the_kernel_does_not_take_is_refused(graph_npu: Worker, dtype: str) -> None:
    assert "add_custom: argument 'self' must be" in graph_npu.run("eager.refuses", dtype)
