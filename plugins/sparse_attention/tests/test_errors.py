"""What the ops refuse, in which words; and that refusing leaves the caches alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples, to_nz
from torch import Tensor

Arguments = dict[str, Any]
FUSED = (
    "x", "w_dq", "w_uq_qr", "w_uk", "w_dkv_kr", "gamma_cq", "gamma_ckv", "sin", "cos",
    "cache_index", "kv_cache", "kr_cache", "block_table", "act_seqs", "w_idx_qb", "w_idx_k",
    "w_idx_proj", "in_gamma_k", "in_beta_k", "index_k_cache",
)  # fmt: skip
ATTENTION = (
    "query", "query_rope", "kv_cache", "kr_cache", "sparse_indices", "block_table",
    "actual_seq_lengths_kv",
)  # fmt: skip
CACHES = ("kv_cache", "kr_cache", "index_k_cache")


def fused_arguments() -> Arguments:
    return dict(zip(FUSED, samples.fused_arguments(samples.SMALL), strict=True))


def attention_arguments() -> Arguments:
    arguments, keywords = samples.attention_arguments(replace(samples.SMALL, tokens=2))
    return {**dict(zip(ATTENTION, arguments, strict=True)), **keywords}


def put(index: tuple[int, ...], value: int) -> Callable[[Tensor], Tensor]:
    def changed(tensor: Tensor) -> Tensor:
        copy = tensor.clone()
        copy[index] = value
        return copy

    return changed


def on_meta(arguments: Arguments) -> Arguments:
    """What a graph has of them while it is traced."""
    return {
        name: torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="meta")
        if isinstance(each, Tensor)
        else each
        for name, each in arguments.items()
    }


def narrower(tensor: Tensor) -> Tensor:
    return tensor[..., :-1].contiguous()


FUSED_ERRORS: list[tuple[str, Callable[[Tensor], Tensor], str]] = [
    ("x", lambda t: t[0], "must be 3-D, got 2-D [1, 64]"),
    ("x", lambda t: t.double(), "must be bfloat16, float16 or float32, got float64"),
    ("w_dq", lambda t: t.half(), "must have the dtype of 'x' (bfloat16), got float16"),
    ("w_dq", lambda t: t[:-1], "must have size 64 in dimension 0 (the hidden size of x), got 63"),
    ("w_dq", lambda t: t[0], "must be 2-D or 3-D, got 1-D [48]"),
    (
        "w_dq",
        lambda t: t.reshape(64, 6, 8).permute(1, 0, 2),
        "must have size 16 in dimension 2 (columns side by side in fractal NZ order), got 8",
    ),
    ("w_uq_qr", narrower, "must have size 192 in dimension 1 (heads of w_uk times the sum of its"),
    ("w_uk", lambda t: t[0], "must be 3-D ([N1, P, L]), got 2-D [16, 64]"),
    ("w_dkv_kr", narrower, "must have size 72 in dimension 1 (the latent size of w_uk plus"),
    ("gamma_cq", narrower, "must have size 48 in dimension 0 (the columns of w_dq), got 47"),
    (
        "gamma_ckv",
        lambda t: t.half(),
        "must have the dtype of 'x' (bfloat16) or be float32, got float16",
    ),
    (
        "cos",
        lambda t: t[:1],
        "must begin with the sizes [2, 1] (as many tokens as x), got [1, 1, 8]",
    ),
    ("cache_index", put((0, 0), -1), "must hold slots from 0 to 95 (6 blocks of 16), got -1"),
    ("cache_index", put((1, 0), 96), "must hold slots from 0 to 95 (6 blocks of 16), got 96"),
    (
        "cache_index",
        lambda t: t[:1],
        "must have the sizes [2, 1] (as many tokens as x), got [1, 1]",
    ),
    ("cache_index", lambda t: t.float(), "must be int32 or int64, got float32"),
    ("kv_cache", narrower, "must have size 64 in dimension 3 (the latent size of w_uk), got 63"),
    ("kv_cache", lambda t: t.float(), "must have the dtype of 'x' (bfloat16), got float32"),
    ("kv_cache", lambda t: t[:, :, 0], "must be 4-D ([blocks, block_size, 1, L]), got 3-D"),
    (
        "kv_cache",
        lambda t: t.repeat(1, 1, 1, 2)[..., ::2],
        "must be contiguous in its last dimension, got shape [6, 16, 1, 64]",
    ),
    ("kr_cache", lambda t: t[1:], "must have size 6 in dimension 0 (as many blocks as kv_cache)"),
    ("index_k_cache", lambda t: t[:, 1:], "in dimension 1 (as large blocks as kv_cache), got 15"),
    ("block_table", lambda t: t[:1], "must have size 2 in dimension 0 (the number of sequences)"),
    ("block_table", put((0, 2), -1), "must hold a block from 0 to 5 at [0, 2], which is needed"),
    ("block_table", put((1, 0), 6), "must hold a block from 0 to 5 at [1, 0], which is needed"),
    ("act_seqs", put((1,), 65), "must be from 0 to 64 (4 blocks of 16 in a row of block_table)"),
    ("act_seqs", put((0,), -3), "got -3 for sequence 0"),
    ("act_seqs", lambda t: t[:1], "must have size 2 in dimension 0 (the number of sequences)"),
    ("w_idx_qb", narrower, "must have size 128 in dimension 1 (the columns of w_idx_proj times"),
    ("w_idx_k", lambda t: t[1:], "must have size 64 in dimension 0 (the hidden size of x)"),
    ("in_gamma_k", narrower, "must have size 16 in dimension 0 (the columns of w_idx_k), got 15"),
    (
        "in_beta_k",
        lambda t: t.half(),
        "must have the dtype of 'x' (bfloat16) or be float32, got float16",
    ),
]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    FUSED_ERRORS,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(FUSED_ERRORS)],
)
def test_fused_op_refuses_and_writes_nothing(
    name: str, change: Callable[[Tensor], Tensor], message: str
) -> None:
    arguments = fused_arguments()
    arguments[name] = change(arguments[name])
    before = {cache: arguments[cache].clone() for cache in CACHES}
    with pytest.raises(RuntimeError, match=re.escape(message)) as caught:
        torch.ops.custom_pypto.npu_sparse_attention_pto(**arguments)
    assert str(caught.value).startswith("npu_sparse_attention_pto: argument ")
    for cache in CACHES:
        assert torch.equal(arguments[cache], before[cache])


# What only values show, which a graph does not have while it is traced.
OF_VALUES = ("must hold", "must be from 0", "for sequence")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name}-{number}")
        for number, (name, change, message) in enumerate(FUSED_ERRORS)
        if not any(words in message for words in OF_VALUES)
    ],
)
def test_tracing_refuses_in_the_same_words(name: str, change: Callable[[Tensor], Tensor]) -> None:
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    arguments = fused_arguments()
    arguments[name] = change(arguments[name])
    with pytest.raises(RuntimeError) as refused:
        op(**arguments)
    with pytest.raises(RuntimeError) as while_tracing:
        op(**on_meta(arguments))
    first, second = (str(error.value).splitlines()[0] for error in (refused, while_tracing))
    assert first == second


def test_a_whole_message() -> None:
    arguments = fused_arguments()
    arguments["cache_index"][1, 0] = 1000
    with pytest.raises(RuntimeError) as caught:
        torch.ops.custom_pypto.npu_sparse_attention_pto(**arguments)
    assert str(caught.value).splitlines()[0] == (
        "npu_sparse_attention_pto: argument 'cache_index' must hold slots from 0 to 95"
        " (6 blocks of 16), got 1000 for token 1"
    )


def test_fp32_weights_have_no_fractal_order() -> None:
    sizes = replace(samples.FRACTAL_SIZES, dtype=torch.float32)
    arguments = dict(zip(FUSED, samples.fused_arguments(sizes), strict=True))
    arguments["w_dq"] = to_nz(arguments["w_dq"].half()).float()
    message = "argument 'w_dq' is 3-D, which means fractal NZ order and is for 16-bit dtypes"
    for given in (arguments, on_meta(arguments)):
        with pytest.raises(RuntimeError, match=message):
            torch.ops.custom_pypto.npu_sparse_attention_pto(**given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rope": 7}, "'sin' must have an even, positive size in its last dimension"),
        ({"rope": 18}, "'sin' must not be wider than the head size 16"),
        ({"index_heads": 0}, "'w_idx_proj' must have at least one column (a head of the indexer)"),
    ],
)
def test_sizes_that_agree_but_cannot_be(changed: dict[str, int], message: str) -> None:
    values = samples.fused_arguments(replace(samples.SMALL, **changed))  # type: ignore[arg-type]
    arguments = dict(zip(FUSED, values, strict=True))
    for given in (arguments, on_meta(arguments)):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            torch.ops.custom_pypto.npu_sparse_attention_pto(**given)


def test_blocks_without_tokens() -> None:
    arguments = fused_arguments()
    for name in CACHES:
        arguments[name] = arguments[name][:, :0]
    message = (
        "argument 'kv_cache' must have a positive block size in dimension 1, got [6, 0, 1, 64]"
    )
    for given in (arguments, on_meta(arguments)):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            torch.ops.custom_pypto.npu_sparse_attention_pto(**given)


ATTENTION_ERRORS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("query", lambda t: t[0, 0], "must be 3-D or 4-D, got 2-D [8, 64]"),
    ("query", lambda t: t.int(), "must be bfloat16, float16, float32 or float64, got int32"),
    (
        "query_rope",
        lambda t: t[:1],
        "must have size 2 in dimension 0 (the number of sequences), got",
    ),
    ("query_rope", lambda t: t[0], "must be 4-D ([B, S1, N1, R]), got 3-D [2, 8, 8]"),
    ("query_rope", lambda t: t[:, :1], "in dimension 1 (as many tokens as query), got 1 in"),
    ("query_rope", lambda t: t[:, :, 1:], "in dimension 2 (as many heads as query), got 7 in"),
    ("query_rope", lambda t: t.float(), "must have the dtype of 'query' (bfloat16), got float32"),
    ("kv_cache", narrower, "must have size 64 in dimension 3 (the size of query's heads), got 63"),
    ("kr_cache", lambda t: t.float(), "must have the dtype of 'query' (bfloat16), got float32"),
    ("sparse_indices", lambda t: t[:, :, 0], "must be 4-D ([B, S1, 1, K]), got 3-D [2, 2, 32]"),
    ("sparse_indices", lambda t: t.float(), "must be int32 or int64, got float32"),
    ("sparse_indices", put((0, 0, 0, 0), -2), "must hold -1 or positions below 40, the length of"),
    ("sparse_indices", put((1, 0, 0, 0), 7), "must hold -1 or positions below 7, the length of"),
    ("block_table", lambda t: t * 0 - 1, "must hold a block from 0 to 5 at ["),
    ("actual_seq_lengths_kv", put((1,), 1000), "must be from 0 to 64 (4 blocks of 16 in a row"),
    ("sparse_mode", lambda _: 1, "must be 0 or 3, got 1"),
    ("actual_seq_lengths_query", lambda _: torch.tensor([2, -3]), "got -3 for sequence 1"),
]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    ATTENTION_ERRORS,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(ATTENTION_ERRORS)],
)
def test_attention_refuses(name: str, change: Callable[[Any], Any], message: str) -> None:
    arguments = attention_arguments()
    arguments[name] = change(arguments.get(name))
    with pytest.raises(RuntimeError, match=re.escape(message)) as caught:
        torch.ops.custom_pypto.npu_sparse_flash_attention(**arguments)
    assert str(caught.value).startswith(f"npu_sparse_flash_attention: argument '{name}'")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name}-{number}")
        for number, (name, change, message) in enumerate(ATTENTION_ERRORS)
        if not any(words in message for words in OF_VALUES)
    ],
)
def test_tracing_attention_refuses_in_the_same_words(
    name: str, change: Callable[[Any], Any]
) -> None:
    op = torch.ops.custom_pypto.npu_sparse_flash_attention
    arguments = attention_arguments()
    arguments[name] = change(arguments.get(name))
    with pytest.raises(RuntimeError) as refused:
        op(**arguments)
    with pytest.raises(RuntimeError) as while_tracing:
        op(**on_meta(arguments))
    first, second = (str(error.value).splitlines()[0] for error in (refused, while_tracing))
    assert first == second


def test_attention_refuses_heads_without_a_size() -> None:
    arguments = attention_arguments()
    for name in ("query", "query_rope", "kv_cache", "kr_cache"):
        arguments[name] = arguments[name][..., :0]
    message = "argument 'query' must have, with query_rope, a head size of at least 1, got [2, 2"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        torch.ops.custom_pypto.npu_sparse_flash_attention(**arguments)


@pytest.mark.parametrize(
    ("ends", "message"),
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
        ([1, 3], "must end at 4, the number of query tokens, got 3"),
    ],
)
def test_attention_refuses_prefix_sums(ends: list[int] | None, message: str) -> None:
    arguments = attention_arguments()
    for name in ("query", "query_rope", "sparse_indices"):
        arguments[name] = arguments[name].flatten(0, 1)
    arguments["actual_seq_lengths_query"] = None if ends is None else torch.tensor(ends)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        torch.ops.custom_pypto.npu_sparse_flash_attention(**arguments)


def test_indexer_prolog_refuses_a_query_of_another_size() -> None:
    arguments = list(samples.indexer_arguments(samples.SMALL))
    arguments[1] = arguments[1][..., :-1]
    message = "npu_indexer_prolog: argument 'w_idx_qb' must have size 47 in dimension 0"
    with pytest.raises(RuntimeError, match=message):
        torch.ops.custom_pypto.npu_indexer_prolog(*arguments)


def test_caches_that_require_grad_are_refused() -> None:
    arguments = fused_arguments()
    arguments["kv_cache"].requires_grad_()
    with pytest.raises(RuntimeError, match="npu_sparse_attention_pto: argument 'kv_cache'"):
        torch.ops.custom_pypto.npu_sparse_attention_pto(**arguments)


OPS: dict[str, Callable[[samples.Sizes], tuple[Tensor, ...]]] = {
    "npu_sparse_attention_pto": samples.fused_arguments,
    "npu_mla_prolog": samples.mla_arguments,
    "npu_indexer_prolog": samples.indexer_arguments,
    "npu_sparse_flash_attention": lambda sizes: samples.attention_arguments(sizes)[0],
}


@pytest.mark.parametrize("name", OPS)
def test_tensors_on_several_devices(name: str) -> None:
    """With one on meta the fake is called: it would return what nothing was written to."""
    arguments = OPS[name](samples.SMALL)
    keywords = {"scale": 1.0} if name == "npu_sparse_flash_attention" else {}
    for index in range(len(arguments)):
        mixed = [a.to("meta") if i == index else a for i, a in enumerate(arguments)]
        with pytest.raises(RuntimeError, match=f"{name}: argument .* must be on the device of"):
            getattr(torch.ops.custom_pypto, name)(*mixed, **keywords)
