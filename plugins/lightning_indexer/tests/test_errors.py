"""Refusals that depend on values, or that a rule of ops.toml cannot say alone.

The conformance suite draws calls that break any other rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from refusals import assert_refused

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
QUERY_ENDS, KEY_ENDS = "actual_seq_lengths_query", "actual_seq_lengths_key"

PAGED_ERRORS = [
    (KEY_ENDS, int32(12, -3), "got -3 for sequence 1"),
    (KEY_ENDS, int32(16, 7), "got 16 for sequence 0"),
    (QUERY_ENDS, int32(-1, 3), "got -1 for sequence 0"),
    ("block_table", int32([3, 0, -1], [1, 4, -1]), "got -1 at [0, 2]"),
    ("block_table", int32([3, 0, 5], [1, 6, -1]), "got 6 at [1, 1]"),
]
OF_QUERIES, OF_KEYS = "at most 5 (the number of query tokens)", "at most 9 (the number of keys)"
TND_ERRORS = [
    (QUERY_ENDS, int32(4, 3), "got 3 after 4 at sequence 1"),
    (KEY_ENDS, int32(-2, 9), "got -2 after 0 at sequence 0"),
    (QUERY_ENDS, int32(2, 6), f"{OF_QUERIES}, got 6 after 2 at sequence 1"),
    (KEY_ENDS, int32(3, 10), f"{OF_KEYS}, got 10 after 3 at sequence 1"),
]


@pytest.mark.parametrize(("name", "value", "text"), PAGED_ERRORS)
def test_refuses_paged_and_works_again(
    indexer: Op, arguments: dict[str, Any], name: str, value: Any, text: str
) -> None:
    expected = indexer(**arguments)
    assert_refused(OP, {**arguments, name: value}, name, text, is_of_values=True)
    assert indexer(**arguments).equal(expected)


@pytest.mark.parametrize(("name", "value", "text"), TND_ERRORS)
def test_refuses_tnd(name: str, value: Any, text: str) -> None:
    assert_refused(OP, {**TND, name: value}, name, text, is_of_values=True)


@pytest.mark.parametrize(
    "op", ["npu_lightning_indexer_pto", "npu_lightning_indexer", "npu_quant_lightning_indexer"]
)
def test_a_block_table_of_a_call_that_forgets_layout_key_is_refused_with_it(
    arguments: dict[str, Any], op: str
) -> None:
    if op == "npu_lightning_indexer_pto":
        arguments["layout_key"] = "BSND"  # the others' default
    if op == "npu_quant_lightning_indexer":
        for name in ("query", "key"):
            arguments[f"{name}_dequant_scale"] = torch.ones(arguments[name].shape[:3])
            arguments[f"{name}_quant_mode"] = 0
            arguments[name] = arguments[name].to(torch.int8)
    text = "must be None unless layout_key is 'PA_BSND'; layout_key is 'BSND'"
    assert_refused(op, arguments, "block_table", text)


def test_unneeded_entries_of_the_table_may_be_anything(
    indexer: Op, arguments: dict[str, Any]
) -> None:
    expected = indexer(**arguments)
    arguments["block_table"] = int32([3, 0, 5], [1, 4, 77])
    assert indexer(**arguments).equal(expected)
