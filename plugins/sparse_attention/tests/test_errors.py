"""Calls that the ops refuse, with the errors.

Wrong dtypes, strides, sizes and numbers of dimensions are drawn by the conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples, to_nz
from refusals import assert_refused
from torch import Tensor

FUSED = "npu_sparse_attention_pto"
ATTENTION = "npu_sparse_flash_attention"
OPS: dict[str, Callable[[samples.Sizes], samples.Arguments]] = {
    FUSED: samples.fused_arguments,
    ATTENTION: samples.attention_arguments,
}
SIZES = {ATTENTION: replace(samples.SMALL, tokens=2)}
CACHES = ("kv_cache", "kr_cache", "index_k_cache")
# Parts of errors that depend on values.
OF_VALUES = ("must hold", "must be from 0", "for sequence", "prefix sums, from")


def arguments_of(op: str) -> samples.Arguments:
    return OPS[op](SIZES.get(op, samples.SMALL))


def put(index: tuple[int, ...], value: int) -> Callable[[Tensor], Tensor]:
    def changed(tensor: Tensor) -> Tensor:
        copy = tensor.clone()
        copy[index] = value
        return copy

    return changed


FUSED_ERRORS: list[tuple[str, Callable[[Tensor], Tensor], str]] = [
    ("cache_index", put((0, 0), -1), "must hold slots from 0 to 95 (6 blocks of 16), got -1"),
    ("cache_index", put((1, 0), 96), "must hold slots from 0 to 95 (6 blocks of 16), got 96"),
    ("block_table", put((0, 2), -1), "must hold a block from 0 to 5 at [0, 2], which is needed"),
    ("block_table", put((1, 0), 6), "must hold a block from 0 to 5 at [1, 0], which is needed"),
    ("act_seqs", put((1,), 65), "must be from 0 to 64 (4 blocks of 16 in a row of block_table)"),
    ("act_seqs", put((0,), -3), "got -3 for sequence 0"),
]


ATTENTION_ERRORS: list[tuple[str, Callable[[Any], Any], str]] = [
    (
        "kv_cache",
        lambda t: t[..., :-1].contiguous(),
        "must have size 64 in dimension 3 (the size of query's heads), got 63",
    ),
    ("sparse_indices", put((0, 0, 0, 0), -2), "must hold -1 or positions below 40, the length of"),
    ("sparse_indices", put((1, 0, 0, 0), 7), "must hold -1 or positions below 7, the length of"),
    ("block_table", lambda t: t * 0 - 1, "must hold a block from 0 to 5 at ["),
    ("actual_seq_lengths_kv", put((1,), 1000), "must be from 0 to 64 (4 blocks of 16 in a row"),
    ("sparse_mode", lambda _: 1, "must be 0 or 3, got 1"),
    ("actual_seq_lengths_query", lambda _: torch.tensor([2, -3]), "got -3 for sequence 1"),
]


ERRORS = [
    *((FUSED, *each) for each in FUSED_ERRORS),
    *((ATTENTION, *each) for each in ATTENTION_ERRORS),
]


@pytest.mark.parametrize(
    ("op", "name", "change", "text"),
    ERRORS,
    ids=[f"{op}-{name}-{number}" for number, (op, name, _, _) in enumerate(ERRORS)],
)
def test_an_argument_is_refused(
    op: str, name: str, change: Callable[[Any], Any], text: str
) -> None:
    arguments = arguments_of(op)
    arguments[name] = change(arguments.get(name))
    is_of_values = any(words in text for words in OF_VALUES)
    assert_refused(op, arguments, name, text, is_of_values=is_of_values)


def test_a_whole_message() -> None:
    arguments = arguments_of(FUSED)
    arguments["cache_index"][1, 0] = 1000
    with pytest.raises(RuntimeError) as caught:
        torch.ops.custom_pypto.npu_sparse_attention_pto(**arguments)
    assert str(caught.value).splitlines()[0] == (
        "npu_sparse_attention_pto: argument 'cache_index' must hold slots from 0 to 95"
        " (6 blocks of 16), got 1000 for token 1"
    )


def test_fp32_weights_have_no_fractal_order() -> None:
    arguments = samples.fused_arguments(replace(samples.FRACTAL_SIZES, dtype=torch.float32))
    arguments["w_dq"] = to_nz(arguments["w_dq"].half()).float()
    text = "is 3-D, which means fractal NZ order and is for 16-bit dtypes"
    assert_refused(FUSED, arguments, "w_dq", text)


@pytest.mark.parametrize(
    ("changed", "name", "text"),
    [
        ({"rope": 7}, "sin", "must have an even, positive size in its last dimension"),
        ({"rope": 18}, "sin", "must not be wider than the head size 16"),
        ({"index_heads": 0}, "w_idx_proj", "must have at least one column (a head of the indexer)"),
    ],
)
def test_sizes_that_agree_but_cannot_be(changed: dict[str, Any], name: str, text: str) -> None:
    assert_refused(FUSED, samples.fused_arguments(replace(samples.SMALL, **changed)), name, text)


def test_blocks_without_tokens() -> None:
    arguments = arguments_of(FUSED)
    for name in CACHES:
        arguments[name] = arguments[name][:, :0]
    text = "must have a positive block size in dimension 1, got [6, 0, 1, 64]"
    assert_refused(FUSED, arguments, "kv_cache", text)


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


def test_heads_without_a_size() -> None:
    arguments = arguments_of(ATTENTION)
    for name in ("query", "query_rope", "kv_cache", "kr_cache"):
        arguments[name] = arguments[name][..., :0]
    text = "must have, with query_rope, a head size of at least 1, got [2, 2"
    assert_refused(ATTENTION, arguments, "query", text)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        (None, "is required with a 3-D query"),
        (
            [3, 2],
            "must be prefix sums, from 0 to the 4 tokens of query, got 2 for sequence 1 after",
        ),
        (
            [3, 5],
            "must be prefix sums, from 0 to the 4 tokens of query, got 5 for sequence 1 after",
        ),
    ],
)
def test_prefix_sums_that_are_wrong(ends: list[int] | None, text: str) -> None:
    arguments = arguments_of(ATTENTION)
    for name in ("query", "query_rope", "sparse_indices"):
        arguments[name] = arguments[name].flatten(0, 1)
    name = "actual_seq_lengths_query"
    arguments[name] = None if ends is None else torch.tensor(ends)
    assert_refused(ATTENTION, arguments, name, text, is_of_values=ends is not None)
