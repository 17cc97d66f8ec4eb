"""The quantised indexer prolog with weights in FRACTAL_NZ."""

from __future__ import annotations

import pytest
from worker import Start, Worker


def test_the_kernel_of_an_opp_package_is_launched_for_nz_weights(start: Start) -> None:
    assert start("custom").run("indexer_prolog.agrees", "deepseek") == 1


@pytest.mark.parametrize(("kernels", "size"), [("stock", "deepseek"), ("custom", "few-heads")])
def test_it_is_composed_for_nz_weights_elsewhere(start: Start, kernels: str, size: str) -> None:
    assert start(kernels).run("indexer_prolog.agrees", size) > 10


@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [("int8", 48, 64), ("int8", 17, 40), ("bfloat16", 48, 64), ("bfloat16", 17, 40)],
)
def test_matrices_are_cast_to_nz_and_back(
    graph_npu: Worker, dtype: str, rows: int, columns: int
) -> None:
    graph_npu.run("indexer_prolog.casts_there_and_back", dtype, rows, columns)
