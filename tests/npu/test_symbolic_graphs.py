"""Ops in torchair's graphs, with symbolic sizes."""

import pytest
from ops import IN_GRAPHS
from worker import Start, Worker


@pytest.mark.parametrize(("kernels", "op"), IN_GRAPHS)
def test_torchair_runs_it(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("samples.passes", "symbolic_graph", op) >= 2


def test_a_size_that_is_an_attribute_is_that_of_the_call(start: Start) -> None:
    # Each sample has another num_seqs, an attribute of AdvanceStep.
    assert start("stock").run("graph.one_function_takes", "npu_advance_step_flashattn") >= 4
