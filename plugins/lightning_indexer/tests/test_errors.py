"""Refusals name the op, the argument and the value.

Wrong dtypes, strides, sizes and numbers of dimensions are drawn by the conformance suite.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from refusals import assert_refused, on_meta

Op = Callable[..., torch.Tensor]
OP = "npu_lightning_indexer_pto"


def int32(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


TND: dict[str, Any] = {
    "query": torch.zeros(5, 4, 8),
    "key": torch.zeros(9, 2, 8),
    "weights": torch.zeros(5, 4),
    "actual_seq_lengths_query": int32(2, 5),
    "actual_seq_lengths_key": int32(3, 9),
    "layout_query": "TND",
    "layout_key": "TND",
}

PAGED_ERRORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "key-heads": ({"key": torch.zeros(6, 5, 3, 8)}, "key", "has 3 heads"),
    "no-key-heads": ({"key": torch.zeros(6, 5, 0, 8)}, "key", "has 0 heads"),
    "block-size": ({"key": torch.zeros(6, 0, 2, 8)}, "key", "[6, 0, 2, 8]"),
    "count": ({"sparse_count": 0}, "sparse_count", "got 0"),
    "mode": ({"sparse_mode": 1}, "sparse_mode", "got 1"),
    "query-layout": ({"layout_query": "BNSD"}, "layout_query", "got 'BNSD'"),
    "key-layout": ({"layout_key": "PA_BNSD"}, "layout_key", "got 'PA_BNSD'"),
    "layouts-differ": ({"layout_key": "TND"}, "layout_key", "got 'TND'"),
    "no-lengths": ({"actual_seq_lengths_key": None}, "actual_seq_lengths_key", "got None"),
    "no-table": ({"block_table": None}, "block_table", "got None"),
    "negative-length": (
        {"actual_seq_lengths_key": int32(12, -3)},
        "actual_seq_lengths_key",
        "got -3 for sequence 1",
    ),
    "length-too-large": (
        {"actual_seq_lengths_key": int32(16, 7)},
        "actual_seq_lengths_key",
        "got 16 for sequence 0",
    ),
    "negative-query-length": (
        {"actual_seq_lengths_query": int32(-1, 3)},
        "actual_seq_lengths_query",
        "got -1 for sequence 0",
    ),
    "needed-block-missing": (
        {"block_table": int32([3, 0, -1], [1, 4, -1])},
        "block_table",
        "got -1 at [0, 2]",
    ),
    "block-out-of-range": (
        {"block_table": int32([3, 0, 5], [1, 6, -1])},
        "block_table",
        "got 6 at [1, 1]",
    ),
}


TND_ERRORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no-query-sums": ({"actual_seq_lengths_query": None}, "actual_seq_lengths_query", "got None"),
    "no-key-sums": ({"actual_seq_lengths_key": None}, "actual_seq_lengths_key", "got None"),
    "decreasing": (
        {"actual_seq_lengths_query": int32(4, 3)},
        "actual_seq_lengths_query",
        "got 3 after 4 at sequence 1",
    ),
    "negative": (
        {"actual_seq_lengths_key": int32(-2, 9)},
        "actual_seq_lengths_key",
        "got -2 after 0 at sequence 0",
    ),
    "query-end": (
        {"actual_seq_lengths_query": int32(2, 6)},
        "actual_seq_lengths_query",
        "at most 5 (the number of query tokens), got 6 after 2 at sequence 1",
    ),
    "key-end": (
        {"actual_seq_lengths_key": int32(3, 10)},
        "actual_seq_lengths_key",
        "at most 9 (the number of keys), got 10 after 3 at sequence 1",
    ),
}


# Errors that depend on lengths and blocks, which a fake does not have.
OF_VALUES = {
    *("negative-length", "length-too-large", "negative-query-length"),
    *("needed-block-missing", "block-out-of-range"),
    *("decreasing", "negative", "query-end", "key-end"),
}


@pytest.mark.parametrize("case", PAGED_ERRORS)
def test_refuses_paged(arguments: dict[str, Any], case: str) -> None:
    change, name, text = PAGED_ERRORS[case]
    assert_refused(OP, arguments | change, name, text, is_of_values=case in OF_VALUES)


@pytest.mark.parametrize("case", TND_ERRORS)
def test_refuses_tnd(case: str) -> None:
    change, name, text = TND_ERRORS[case]
    assert_refused(OP, TND | change, name, text, is_of_values=case in OF_VALUES)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    "op", ["npu_lightning_indexer_pto", "npu_lightning_indexer", "npu_quant_lightning_indexer"]
)
def test_a_block_table_of_a_call_that_forgets_layout_key_is_refused_with_it(
    arguments: dict[str, Any], op: str, device: str
) -> None:
    if op == "npu_lightning_indexer_pto":
        arguments["layout_key"] = "BSND"  # the others' default
    if op == "npu_quant_lightning_indexer":
        for name in ("query", "key"):
            arguments[f"{name}_dequant_scale"] = torch.ones(arguments[name].shape[:3])
            arguments[f"{name}_quant_mode"] = 0
            arguments[name] = arguments[name].to(torch.int8)
    if device == "meta":
        arguments = on_meta(arguments)
    text = (
        f"{op}: argument 'block_table' must be None unless layout_key is 'PA_BSND'; layout_key is"
        " 'BSND'"
    )
    with pytest.raises(RuntimeError, match=f"^{re.escape(text)}$"):
        getattr(torch.ops.custom_pypto, op)(**arguments)


@pytest.mark.parametrize("count", [1 << 45, 1 << 60])
def test_refuses_a_count_for_which_there_is_no_memory(
    indexer: Op, arguments: dict[str, Any], count: int
) -> None:
    text = (
        rf"^npu_lightning_indexer_pto: cannot allocate the output 'positions' \[2, 3, 2, {count}\]"
    )
    with pytest.raises(RuntimeError, match=text):
        indexer(**arguments | {"sparse_count": count})


def test_unneeded_entries_of_the_table_may_be_anything(
    indexer: Op, arguments: dict[str, Any]
) -> None:
    expected = indexer(**arguments)
    arguments["block_table"] = int32([3, 0, 5], [1, 4, 77])
    assert indexer(**arguments).equal(expected)


def test_works_again_after_an_error(indexer: Op, arguments: dict[str, Any]) -> None:
    expected = indexer(**arguments)
    wrong = {**arguments, "block_table": int32([3, 0, 9], [1, 4, 0])}
    assert_refused(OP, wrong, "block_table", "got 9 at [0, 2]", is_of_values=True)
    assert indexer(**arguments).equal(expected)
