"""The gradients of npu_sparse_flash_attention, held against torch's own of the same attention."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_sparse_attention import samples
from refusals import assert_refused
from threads import use_threads
from torch import Tensor

CSRC = Path(__file__).parents[1] / "csrc"
UNIT_COLUMNS = cpp_constant(CSRC, "kUnitColumns")
ROUND_BYTES = cpp_constant(CSRC, "kRoundBytes")
DIFFERENTIABLE = ("query", "query_rope", "kv_cache", "kr_cache")
SIZES = replace(samples.ODD, lengths=(40, 12, 40), tokens=5, dtype=torch.float32)
# Largest error, as a part of the largest number of a gradient.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def attention(**arguments: Any) -> tuple[Tensor, Tensor]:
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_attention(**arguments)
    return out, lse


def call(sizes: samples.Sizes = SIZES, count: int = 20, **changes: Any) -> dict[str, Any]:
    """A call with keys in the layout BSND, of the batch's longest sequence."""
    return samples.unpaged(samples.attention_arguments(sizes, count=count)) | changes


def dense(query: Tensor, query_rope: Tensor, kv: Tensor, kr: Tensor, a: dict[str, Any]) -> Any:
    """The same attention of BSND keys in torch's own ops: (out, log-sum-exp)."""
    indices = a["sparse_indices"].squeeze(2).long()
    tokens = indices.shape[1]
    last = a["actual_seq_lengths_kv"].long()[:, None] - tokens + torch.arange(tokens)
    seen = (indices >= 0) & (indices <= last[..., None])
    rows = indices.clamp(min=0)
    sequence = torch.arange(len(rows))[:, None, None]
    keys = torch.cat((kv, kr), -1)[sequence, rows, 0]
    scores = torch.einsum("bshd,bskd->bshk", torch.cat((query, query_rope), -1), keys) * a["scale"]
    scores = scores.masked_fill(~seen[:, :, None], -math.inf)
    lse = scores.logsumexp(-1)
    weights = torch.where(seen[:, :, None], (scores - lse[..., None]).exp(), 0.0).nan_to_num()
    return torch.einsum("bshk,bskd->bshd", weights, kv[sequence, rows, 0]), lse


def leaves(arguments: dict[str, Any], dtype: torch.dtype | None = None) -> list[Tensor]:
    return [
        arguments[name].detach().to(dtype or arguments[name].dtype).clone().requires_grad_()
        for name in DIFFERENTIABLE
    ]


def gradients(arguments: dict[str, Any], d_out: Tensor, d_lse: Tensor | None) -> list[Tensor]:
    given = leaves(arguments)
    out, lse = attention(**{**arguments, **dict(zip(DIFFERENTIABLE, given, strict=True))})
    outputs = [(out, d_out)] + ([] if d_lse is None else [(lse, d_lse)])
    torch.autograd.backward(*map(list, zip(*outputs, strict=True)))  # type: ignore[arg-type]
    found = [leaf.grad for leaf in given]
    assert all(gradient is not None for gradient in found)
    return found  # type: ignore[return-value]


def check(arguments: dict[str, Any], *, with_lse: bool = False) -> list[Tensor]:
    """The gradients of random ones of the outputs, compared with those that torch computes."""
    generator = torch.Generator().manual_seed(0)
    query = arguments["query"]
    d_out = torch.randn(query.shape, generator=generator).to(query.dtype)
    d_lse = torch.randn(query.shape[:-1], generator=generator) if with_lse else None
    found = gradients({**arguments, "return_softmax_lse": with_lse}, d_out, d_lse)
    wanted = leaves(arguments, torch.float64)
    out, lse = dense(*wanted, arguments)  # type: ignore[misc]
    total = (out * d_out.double()).sum()
    if d_lse is not None:
        total = total + torch.where(lse.isfinite(), lse, 0.0).mul(d_lse).sum()
    total.backward()
    for name, got, leaf in zip(DIFFERENTIABLE, found, wanted, strict=True):
        assert leaf.grad is not None
        assert got.dtype == query.dtype
        error = (got.double() - leaf.grad).abs().max() / leaf.grad.abs().max().clamp(min=1e-30)
        assert error <= TOLERANCE[query.dtype], f"{name}: {error:.2g} of the largest"
    return found


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_gradients_are_those_of_torch(dtype: torch.dtype) -> None:
    check(call(replace(SIZES, dtype=dtype)))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_gradients_through_the_log_sum_exp_are_those_of_torch(dtype: torch.dtype) -> None:
    check(call(replace(SIZES, dtype=dtype)), with_lse=True)


def test_gradients_through_the_log_sum_exp_alone() -> None:
    arguments = call()
    given = leaves(arguments)
    _, lse = attention(
        **{**arguments, **dict(zip(DIFFERENTIABLE, given, strict=True))}, return_softmax_lse=True
    )
    lse.sum().backward()
    wanted = leaves(arguments, torch.float64)
    dense(*wanted, arguments)[1].sum().backward()  # type: ignore[misc]
    for got, leaf in zip(given, wanted, strict=True):
        assert got.grad is not None
        torch.testing.assert_close(got.grad.double(), leaf.grad, rtol=1e-4, atol=1e-5)


def test_a_key_that_is_listed_twice_counts_twice() -> None:
    arguments = call()
    arguments["sparse_indices"] = arguments["sparse_indices"].clamp(max=3)
    check(arguments, with_lse=True)


def test_a_token_that_selects_nothing_has_no_gradient() -> None:
    arguments = call()
    arguments["sparse_indices"][1, 2] = -1
    found = check(arguments, with_lse=True)
    assert int(found[0][1, 2].count_nonzero()) == 0
    assert int(found[1][1, 2].count_nonzero()) == 0


def test_padding_has_no_gradient() -> None:
    sizes = samples.DISTINCT
    whole = samples.unpaged(samples.attention_arguments(sizes, layout="TND"))
    arguments = samples.padded(whole)
    ends, keys = arguments["actual_seq_lengths_query"], len(whole["kv_cache"])
    d_out = torch.ones_like(arguments["query"])
    found = gradients(arguments, d_out, None)
    for gradient, count in zip(found, (ends[-1], ends[-1], keys, keys), strict=True):
        assert int(gradient[:count].count_nonzero()) > 0
        assert int(gradient[count:].count_nonzero()) == 0


@pytest.mark.parametrize("empty", ["indices", "tokens", "sequences", "heads"])
def test_gradients_of_nothing_are_zero(empty: str) -> None:
    arguments = call()
    if empty == "indices":
        arguments["sparse_indices"] = arguments["sparse_indices"][..., :0]
    for name in ("query", "query_rope", "sparse_indices"):
        if empty == "tokens":
            arguments[name] = arguments[name][:, :0]
        elif empty == "heads" and name != "sparse_indices":
            arguments[name] = arguments[name][:, :, :0]
    if empty == "sequences":
        for name in (*DIFFERENTIABLE, "sparse_indices", "actual_seq_lengths_kv"):
            arguments[name] = arguments[name][:0]
    for gradient in gradients(arguments, torch.ones_like(arguments["query"]), None):
        assert int(gradient.count_nonzero()) == 0


def test_a_key_that_no_token_selects_has_no_gradient() -> None:
    arguments = call()
    arguments["sparse_indices"] = arguments["sparse_indices"].clamp(max=5)
    found = check(arguments)
    assert int(found[2][:, 6:].count_nonzero()) == 0
    assert int(found[3][:, 6:].count_nonzero()) == 0


@pytest.mark.parametrize("latent", [UNIT_COLUMNS - 1, UNIT_COLUMNS, 2 * UNIT_COLUMNS + 1])
def test_any_number_of_columns(latent: int) -> None:
    check(call(replace(SIZES, latent=latent, rope=UNIT_COLUMNS + 2)))


@pytest.mark.parametrize("threads", [1, 3])
def test_tokens_of_several_rounds_add_to_the_same_keys(threads: int) -> None:
    heads, count, tokens = 64, 2048, 70
    assert 2 * heads * count * 4 * tokens > ROUND_BYTES
    sizes = replace(SIZES, lengths=(count + tokens,), tokens=tokens, heads=heads, latent=4, rope=2)
    arguments = call(sizes, count=count)

    def latent_gradient(part: slice, sparse_mode: int = 0) -> Tensor:
        given = {n: arguments[n][:, part] for n in ("query", "query_rope", "sparse_indices")}
        given = {**arguments, **given, "sparse_mode": sparse_mode}
        with use_threads(threads):
            return gradients(given, torch.ones_like(given["query"]), None)[2]

    whole = latent_gradient(slice(None))
    halves = latent_gradient(slice(35)) + latent_gradient(slice(35, None))
    torch.testing.assert_close(whole, halves, rtol=1e-4, atol=1e-4)
    assert not torch.equal(whole, latent_gradient(slice(None), sparse_mode=3))


def test_a_backward_without_the_log_sum_exp_computes_it() -> None:
    arguments = call()
    d_out = torch.ones_like(arguments["query"])
    without = gradients(arguments, d_out, None)
    _, lse = attention(**arguments, return_softmax_lse=True)
    found = gradients({**arguments, "return_softmax_lse": True}, d_out, torch.zeros_like(lse))
    for left, right in zip(without, found, strict=True):
        assert torch.equal(left, right)


def test_paged_keys_have_the_gradients_of_plain_ones() -> None:
    paged = samples.attention_arguments(SIZES)
    plain = samples.unpaged(paged)
    d_out = torch.ones_like(paged["query"])
    of_pages, of_rows = (gradients(each, d_out, None) for each in (paged, plain))
    assert torch.equal(of_pages[0], of_rows[0])
    table, size = paged["block_table"].long(), SIZES.block_size
    for b, length in enumerate(SIZES.lengths):
        for position in range(length):
            page = of_pages[2][table[b, position // size], position % size]
            assert torch.equal(page, of_rows[2][b, position])
    assert int(of_pages[2].count_nonzero()) == int(of_rows[2].count_nonzero())


def test_a_gradient_of_one_argument_only() -> None:
    arguments = call()
    arguments["query_rope"].requires_grad_()
    attention(**arguments)[0].sum().backward()
    assert arguments["query_rope"].grad is not None
    assert arguments["query"].grad is None


def test_a_second_derivative_is_an_error_that_says_so() -> None:
    arguments = call()
    arguments["query"].requires_grad_()
    (first,) = torch.autograd.grad(
        attention(**arguments)[0].sum(), arguments["query"], create_graph=True
    )
    with pytest.raises(RuntimeError, match=r"^npu_sparse_flash_attention has no second"):
        first.sum().backward()


REFUSED: dict[str, tuple[Tensor, str]] = {
    "sparse_indices": (
        torch.full((3, 5, 1, 20), -1).index_fill(0, torch.tensor([0]), 41),
        "must hold -1 or positions below 40, the length of sequence 0, got 41",
    ),
    "actual_seq_kvlen": (
        torch.tensor([50, 1, 1]),
        "must be from 0 to 40, the keys of a sequence, got 50 for sequence 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_backward_refuses(name: str) -> None:
    arguments = samples.gradient_arguments(call())
    for each in ("key", "value", "key_rope"):
        arguments[each] = arguments[each][:, :40]
    value, text = REFUSED[name]
    op = "npu_sparse_flash_attention_grad"
    assert_refused(op, {**arguments, name: value}, name, text, is_of_values=True)
