"""Refusals that depend on values, or that a rule of ops.toml cannot say alone.

The conformance suite draws calls that break any other rule.
"""

from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from refusals import assert_refused

OP = "npu_lightning_indexer_pto"
indexer = torch.ops.custom_pypto.npu_lightning_indexer_pto


def int32(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


PAGED: dict[str, Any] = {
    "query": normal(2, 3, 4, 8),
    "key": normal(6, 5, 2, 8),
    "weights": normal(2, 3, 4),
    "actual_seq_lengths_key": int32(12, 7),
    "block_table": int32([3, 0, 5], [1, 4, -1]),
    "sparse_count": 4,
}
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
REFUSED = [
    (PAGED, KEY_ENDS, int32(12, -3), "got -3 for sequence 1"),
    (PAGED, KEY_ENDS, int32(16, 7), "got 16 for sequence 0"),
    (PAGED, QUERY_ENDS, int32(-1, 3), "got -1 for sequence 0"),
    (PAGED, "block_table", int32([3, 0, -1], [1, 4, -1]), "got -1 at [0, 2]"),
    (PAGED, "block_table", int32([3, 0, 5], [1, 6, -1]), "got 6 at [1, 1]"),
    (TND, QUERY_ENDS, int32(4, 3), "got 3 after 4 at sequence 1"),
    (TND, KEY_ENDS, int32(-2, 9), "got -2 after 0 at sequence 0"),
    (TND, QUERY_ENDS, int32(2, 6), "at most 5 (the number of query tokens), got 6 after 2 at seq"),
]


@pytest.mark.parametrize(("arguments", "name", "value", "text"), REFUSED)
def test_refuses_and_works_again(
    arguments: dict[str, Any], name: str, value: Any, text: str
) -> None:
    expected = indexer(**arguments)
    assert_refused(OP, {**arguments, name: value}, name, text, is_of_values=True)
    assert indexer(**arguments).equal(expected)


def test_a_compiled_call_is_refused_in_the_same_words() -> None:
    arguments, name, value, text = REFUSED[0]
    with pytest.raises(RuntimeError, match=f"^{OP}: argument '{name}' .*{text}"):
        torch.compile(indexer, fullgraph=True, backend="aot_eager")(**{**arguments, name: value})
