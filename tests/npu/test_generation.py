"""Models of transformers on an NPU, with every kind of kernel."""

from __future__ import annotations

import pytest
from worker import Start, Worker


@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
def test_a_model_generates_the_tokens_of_the_cpu(graph_npu: Worker, family: str) -> None:
    graph_npu.run("generation.generates_the_tokens_of_the_cpu", family)


def test_a_model_of_other_sizes_falls_back(start: Start) -> None:
    warning = start("stock").run("generation.falls_back_where_the_kernels_do_not_take_its_sizes")
    assert "runs transformers' own attention" in warning
    assert "argument 'kv_cache' must have rows of size 512, got 64" in warning
