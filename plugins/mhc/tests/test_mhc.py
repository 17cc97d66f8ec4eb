"""A layer of hyper-connections: values, gradients, extreme inputs, and what a token depends on."""

import functools
import os
import runpy
from typing import Any

import pytest
import torch
from custom_pypto_mhc import (
    npu_mhc_post,
    npu_mhc_pre,
    npu_mhc_sinkhorn,
    npu_mhc_sinkhorn_backward,
    reference,
)
from torch import Tensor

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
STREAMS = (4, 6, 8)
FILE = os.environ.get("CUSTOM_PYPTO_TEST_TILE_KERNELS", "")


def make_layer(tokens: int, n: int, columns: int, dtype: torch.dtype = DTYPES[2]) -> dict[str, Any]:
    """Return x, the weights of npu_mhc_pre, and the output of a layer."""
    generator = torch.Generator().manual_seed(n * columns + tokens)
    draw = functools.partial(torch.randn, generator=generator)
    rows = n * n + 2 * n
    return {
        "x": draw(tokens, n, columns).to(dtype),
        "phi": draw(rows, n * columns) / (n * columns) ** 0.5,
        "alpha": draw(3),
        "bias": draw(rows),
        "h_out": draw(tokens, columns).to(dtype),
    }


def run_layer(x: Tensor, phi: Tensor, alpha: Tensor, bias: Tensor, h_out: Tensor) -> Any:
    """Return h_in and the streams after the layer."""
    h_in, h_post, h_res, *_ = npu_mhc_pre(x, phi, alpha, bias)
    mixed, _, _ = npu_mhc_sinkhorn(h_res)
    return h_in, npu_mhc_post(x, mixed, h_out, h_post)


def run_eager(x: Tensor, phi: Tensor, alpha: Tensor, bias: Tensor, h_out: Tensor) -> Any:
    """Return the same by torch's ops, whose gradients torch knows; in the dtype of phi."""
    n, wide = x.shape[-2], x.to(phi.dtype)
    flat = wide.flatten(1)
    normed = flat * (flat.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    parts = torch.split(normed @ phi.T, [n, n, n * n], -1)
    gates, post, res = (
        part * scale + offset
        for part, scale, offset in zip(parts, alpha, torch.split(bias, [n, n, n * n]), strict=True)
    )
    h_in = ((gates.sigmoid() + 1e-6).unsqueeze(-1) * wide).sum(1)
    mixed = res.unflatten(-1, (n, n)).softmax(-1) + 1e-6
    mixed = mixed / (mixed.sum(-2, keepdim=True) + 1e-6)
    for _ in range(19):
        mixed = mixed / (mixed.sum(-1, keepdim=True) + 1e-6)
        mixed = mixed / (mixed.sum(-2, keepdim=True) + 1e-6)
    added = 2 * post.sigmoid().unsqueeze(-1) * h_out.to(phi.dtype).unsqueeze(1)
    return h_in, torch.einsum("tij,tid->tjd", mixed, wide) + added


def assert_near(actual: Tensor, expected: Tensor, part: float) -> None:
    """Assert that no number is further off than a part of the largest."""
    off = (actual.double() - expected.double()).abs().max()
    assert off <= part * expected.double().abs().max(), f"off by {off}"


@pytest.mark.parametrize(("dtype", "n"), [*zip(DTYPES, STREAMS, strict=True)])
def test_a_layer_is_eagers(dtype: torch.dtype, n: int) -> None:
    given = make_layer(37, n, 200, dtype)
    wide = {name: each.double() for name, each in given.items()}
    for actual, expected in zip(run_layer(**given), run_eager(**wide), strict=True):
        assert actual.dtype == dtype
        assert_near(actual, expected, {torch.bfloat16: 4e-3, torch.float16: 5e-4}.get(dtype, 1e-6))


@pytest.mark.skipif(not FILE, reason="CUSTOM_PYPTO_TEST_TILE_KERNELS names no TileKernels' mhc.py")
def test_a_layer_is_that_of_tile_kernels() -> None:
    theirs = runpy.run_path(FILE)
    for n in STREAMS:
        given = make_layer(37, n, 200, torch.bfloat16)
        x, phi, alpha, bias, h_out = given.values()
        parts = theirs["mhc_pre_norm_fn_ref"](x[None], phi, None, 1e-6), alpha, bias, n, 2.0, 1e-6
        gates, h_post, h_res = theirs["mhc_pre_split_mixes_ref"](*parts)
        mixed = theirs["sinkhorn_normalize_ref"](h_res, 20, 1e-6)
        h_in = theirs["mhc_pre_apply_mix_ref"](x[None], gates)
        y = theirs["mhc_post_ref"](h_out[None], x[None], h_post, mixed)
        for actual, expected in zip(run_layer(**given), (h_in[0], y[0]), strict=True):
            assert_near(actual, expected, 4e-3)


@pytest.mark.parametrize(("dtype", "n"), [*zip(DTYPES, STREAMS, strict=True)])
def test_gradients_of_a_layer_are_eagers(dtype: torch.dtype, n: int) -> None:
    given = make_layer(29, n, 136, dtype)
    wide = {name: each.double() for name, each in given.items()}
    for each in (*given.values(), *wide.values()):
        each.requires_grad_()
    generator = torch.Generator().manual_seed(0)
    for layer, inputs in ((run_layer, given), (run_eager, wide)):
        results = layer(**inputs)
        grads = [torch.randn(each.shape, generator=generator).to(each) for each in results]
        generator.manual_seed(0)
        torch.autograd.backward(results, grads)
    for name, each in given.items():
        assert each.grad is not None
        assert each.grad.dtype == each.dtype
        # x, h_out, and what each step returns are rounded in 16 bits.
        part = {torch.bfloat16: 2e-2, torch.float16: 2e-3}.get(dtype, 1e-5)
        assert_near(each.grad, wide[name].grad, part)


@pytest.mark.parametrize(("tokens", "n"), [(64 * 113 + 5, 8), (64 * 161, 6)])
def test_norm_and_sum_of_cores_with_several_tiles(tokens: int, n: int) -> None:
    x = torch.randn(tokens, n, n, generator=torch.Generator().manual_seed(2))
    found = npu_mhc_sinkhorn(x, num_iters=1, out_flag=1)
    expected = reference.sinkhorn(x, num_iters=1, out_flag=1)
    for actual, each in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, each)
    grad = npu_mhc_sinkhorn_backward(x, *found[1:])
    assert_near(grad, reference.sinkhorn_backward(x, *expected[1:]), 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_token_has_the_same_bits_alone_and_among_others(dtype: torch.dtype) -> None:
    given = make_layer(50, 4, 520, dtype)
    h_in, y = run_layer(**given)
    for token in (0, 17, 49):
        one = {**given, **{name: given[name][token : token + 1] for name in ("x", "h_out")}}
        h_in_of_one, y_of_one = run_layer(**one)
        assert torch.equal(h_in_of_one[0], h_in[token])
        assert torch.equal(y_of_one[0], y[token])


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e30])
def test_extreme_streams_have_finite_results(size: float) -> None:
    given = make_layer(3, 4, 64)
    given["x"] = given["x"] * size
    h_in, y = run_layer(**given)
    expected = run_eager(**{name: each.double() for name, each in given.items()})
    # The squares of 1e30 are inf in fp32, for which the norm is zero, as in eager.
    assert h_in.isfinite().all()
    assert y.isfinite().all()
    if size < 1:
        assert_near(h_in, expected[0], 1e-6)
        assert_near(y, expected[1], 1e-6)


def test_large_logits_choose_one_stream_each() -> None:
    logits = torch.zeros(2, 4, 4)
    logits[0, [0, 1, 2, 3], [2, 0, 3, 1]] = 1e4
    logits[1, 0, 0] = -1e4
    y, _, _ = npu_mhc_sinkhorn(logits)
    torch.testing.assert_close(y, reference.sinkhorn(logits)[0], rtol=1e-5, atol=1e-6)
    assert y[0].round().nonzero().tolist() == [[0, 2], [1, 0], [2, 3], [3, 1]]
    # The reciprocal of a column's sum is infinite.
    logits = torch.tensor([0.0, 0.0, 0.0, -92.0]).expand(1, 4, 4)
    for x in (logits, logits.double() * 8, logits[:0]):
        assert npu_mhc_sinkhorn(x, eps=0.0)[0].eq(0.25).all()


def test_nan_stays_in_its_token() -> None:
    given = make_layer(6, 4, 64)
    clean = run_layer(**given)
    given["x"][2, 1, 5] = float("nan")
    for found, expected in zip(run_layer(**given), clean, strict=True):
        others = [0, 1, 3, 4, 5]
        assert torch.equal(found[others], expected[others])
        assert found[2].isnan().any()


def test_gradients_do_not_need_kept_results() -> None:
    given = {name: each.requires_grad_() for name, each in make_layer(5, 4, 24).items()}
    h_out = given.pop("h_out")
    results = []
    for flag in (0, 1):
        h_in, h_post, h_res, *_ = npu_mhc_pre(**given, out_flag=flag)
        mixed, _, _ = npu_mhc_sinkhorn(h_res, out_flag=flag)
        y = npu_mhc_post(given["x"], mixed, h_out, h_post)
        results.append(torch.autograd.grad((h_in.sum(), y.sum()), [*given.values(), h_out]))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
