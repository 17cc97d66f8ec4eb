"""The gradients of npu_sparse_flash_attention, those of lse too, held against autograd's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_sparse_attention import reference, samples
from custom_pypto_testing.timing.interleaved import torch_threads as use_threads
from refusals import assert_refused
from torch import Tensor

CSRC = Path(__file__).parents[1] / "csrc"
UNIT_COLUMNS = cpp_constant(CSRC, "kUnitColumns")
ROUND_BYTES = cpp_constant(CSRC, "kRoundBytes")
DIFFERENTIABLE = ("query", "query_rope", "kv_cache", "kr_cache")
SIZES = replace(samples.ODD, lengths=(40, 12, 40), tokens=5, dtype=torch.float32)
# Largest error, as a part of the largest number of a gradient.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


attention = torch.ops.custom_pypto.npu_sparse_flash_attention


def call(sizes: samples.Sizes = SIZES, count: int = 20) -> dict[str, Any]:
    """A call with keys in the layout BSND, of the batch's longest sequence."""
    return samples.unpaged(samples.attention_arguments(sizes, count=count))


def gradients(
    function: Callable[..., tuple[Tensor, Tensor]],
    arguments: dict[str, Any],
    d_out: Tensor | None,
    d_lse: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> list[Tensor]:
    """The gradients that the outputs' own ones give, with arguments in a dtype."""
    given = {name: arguments[name].detach().to(dtype, copy=True) for name in DIFFERENTIABLE}
    leaves = [each.requires_grad_() for each in given.values()]
    out, lse = function(**arguments | given, return_softmax_lse=d_lse is not None)
    total = 0.0 if d_out is None else (out * d_out.to(out.dtype)).sum()
    if d_lse is not None:
        total = total + torch.where(lse.isfinite(), lse, 0.0).mul(d_lse).sum()
    return [*torch.autograd.grad(total, leaves)]


def check(
    arguments: dict[str, Any], *, with_out: bool = True, with_lse: bool = True
) -> list[Tensor]:
    """The gradients for random gradients of the outputs, compared with the reference's."""
    generator = torch.Generator().manual_seed(0)
    query = arguments["query"]
    d_out = torch.randn(query.shape, generator=generator).to(query.dtype) if with_out else None
    d_lse = torch.randn(query.shape[:-1], generator=generator) if with_lse else None
    found = gradients(attention, arguments, d_out, d_lse)
    wanted = gradients(reference.sparse_flash_attention, arguments, d_out, d_lse, torch.float64)
    for name, got, expected in zip(DIFFERENTIABLE, found, wanted, strict=True):
        assert got.dtype == query.dtype
        error = (got.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30)
        assert error <= TOLERANCE[query.dtype], f"{name}: {error:.2g} of the largest"
    return found


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("with_out", "with_lse"), [(True, False), (True, True), (False, True)])
def test_gradients_are_those_of_the_reference(
    dtype: torch.dtype, with_out: bool, with_lse: bool
) -> None:
    check(call(replace(SIZES, dtype=dtype)), with_out=with_out, with_lse=with_lse)


def test_keys_count_as_often_as_they_are_listed() -> None:
    """Keys that are listed many times, keys that are never, and a token that lists none."""
    arguments = call()
    arguments["sparse_indices"] = arguments["sparse_indices"].clamp(max=3)
    arguments["sparse_indices"][1, 2] = -1
    of_query, of_query_rope, *of_keys = check(arguments)
    assert not any(each[1, 2].any() for each in (of_query, of_query_rope))
    assert not any(each[:, 4:].any() for each in of_keys)


@pytest.mark.parametrize("latent", [UNIT_COLUMNS - 1, UNIT_COLUMNS, 2 * UNIT_COLUMNS + 1])
def test_any_number_of_columns(latent: int) -> None:
    check(call(replace(SIZES, latent=latent, rope=UNIT_COLUMNS + 2)), with_lse=False)


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
            return gradients(attention, given, torch.ones_like(given["query"]))[2]

    whole = latent_gradient(slice(None))
    halves = latent_gradient(slice(35)) + latent_gradient(slice(35, None))
    torch.testing.assert_close(whole, halves, rtol=1e-4, atol=1e-4)
    assert not torch.equal(whole, latent_gradient(slice(None), sparse_mode=3))


REFUSED = {
    "sparse_indices": (41, "must hold -1 or positions below 40, the length of sequence 0, got 41"),
    "actual_seq_kvlen": (50, "must be from 0 to 40, the keys of a sequence, got 50 for sequence 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_backward_refuses(name: str) -> None:
    arguments = samples.gradient_arguments(call())
    for each in ("key", "value", "key_rope"):
        arguments[each] = arguments[each][:, :40]
    value, text = REFUSED[name]
    arguments[name] = arguments[name].clone()
    arguments[name][0] = value
    assert_refused("npu_sparse_flash_attention_grad", arguments, name, text, is_of_values=True)
