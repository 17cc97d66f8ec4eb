"""Ops in graphs, with every kind of kernel: what runs, and of which nodes it is made."""

from __future__ import annotations

from typing import Any

import pytest
from ops import OPS
from worker import Worker

ALL_TOKENS = 2**63 - 1


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("op", OPS)
def test_torchair_runs_it(graph_npu: Worker, op: str, dynamic: bool) -> None:
    assert graph_npu.run("graph.compiles", op, "torchair", dynamic) >= 5


@pytest.mark.parametrize("op", OPS)
def test_npugraph_ex_runs_it(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.compiles", op, "npugraph_ex", False) >= 5


@pytest.mark.parametrize("op", OPS)
def test_a_captured_graph_takes_new_values_and_fills_caches(graph_npu: Worker, op: str) -> None:
    assert graph_npu.run("graph.replays", op) >= 5


def nodes(npu: Worker, op: str, sample: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = npu.run("graph.nodes", op, sample)
    return found
