"""Refusals that depend on values, or on memory that there is not.

The conformance suite draws calls that break any other rule.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples
from refusals import assert_refused

FUSED = "npu_sparse_attention_pto"
ATTENTION = "npu_sparse_flash_attention"
CACHES = ("kv_cache", "kr_cache", "index_k_cache")


def arguments_of(op: str) -> samples.Arguments:
    if op == FUSED:
        return samples.fused_arguments(samples.SMALL)
    return samples.attention_arguments(replace(samples.SMALL, tokens=2))


ERRORS = [
    (FUSED, "cache_index", (0, 0), -1, "must hold slots from 0 to 95 (6 blocks of 16), got -1"),
    (FUSED, "cache_index", (1, 0), 96, "must hold slots from 0 to 95 (6 blocks of 16), got 96"),
    (FUSED, "block_table", (0, 2), -1, "must hold a block from 0 to 5 at [0, 2], which is needed"),
    (FUSED, "act_seqs", (1,), 65, "must be from 0 to 64 (4 blocks of 16 in a row of block_table)"),
    (ATTENTION, "sparse_indices", (0, 0, 0, 0), -2, "must hold -1 or positions below 40, the leng"),
    (ATTENTION, "sparse_indices", (1, 0, 0, 0), 7, "must hold -1 or positions below 7, the length"),
    (ATTENTION, "block_table", ..., -1, "must hold a block from 0 to 5 at ["),
    (ATTENTION, "actual_seq_lengths_kv", (1,), 1000, "must be from 0 to 64 (4 blocks of 16 in a r"),
    (ATTENTION, "actual_seq_lengths_query", (1,), -3, "got -3 for sequence 1"),
]


@pytest.mark.parametrize(("op", "name", "index", "value", "text"), ERRORS)
def test_a_value_is_refused(op: str, name: str, index: Any, value: int, text: str) -> None:
    arguments = arguments_of(op)
    given = arguments.get(name, torch.tensor([2, 2])).clone()
    given[index] = value
    assert_refused(op, {**arguments, name: given}, name, text, is_of_values=True)


def test_no_cache_is_written_where_there_is_no_memory_for_the_indexer() -> None:
    arguments = arguments_of(FUSED)
    size, heads = arguments["in_gamma_k"].numel(), 1 << 40
    # Weights without rows have no memory.
    arguments["x"] = arguments["x"][..., :0].contiguous()
    for name in ("w_dq", "w_dkv_kr", "w_idx_k", "w_uq_qr"):
        arguments[name] = arguments[name][:0]
    arguments["w_dq"], arguments["gamma_cq"] = arguments["w_dq"][:, :0], arguments["gamma_cq"][:0]
    arguments["w_idx_qb"] = arguments["w_idx_qb"].new_empty(0, heads * size)
    arguments["w_idx_proj"] = arguments["w_idx_proj"].new_empty(0, heads)
    before = {name: arguments[name].clone() for name in CACHES}
    with pytest.raises(RuntimeError, match=f"^{FUSED}: cannot allocate the output 'query_index'"):
        getattr(torch.ops.custom_pypto, FUSED)(**arguments)
    assert all(torch.equal(arguments[name], value) for name, value in before.items())


@pytest.mark.parametrize("ends", [[3, 2], [3, 5]])
def test_prefix_sums_that_are_wrong(ends: list[int]) -> None:
    text = f"must be prefix sums, from 0 to the 3 tokens of query, got {ends[1]} for sequence 1 aft"
    arguments = samples.attention_arguments(replace(samples.SMALL, tokens=2), layout="TND")
    name = "actual_seq_lengths_query"
    arguments[name] = torch.tensor(ends)
    assert_refused(ATTENTION, arguments, name, text, is_of_values=True)
