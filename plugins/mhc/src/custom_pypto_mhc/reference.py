"""Each op in plain PyTorch, in float64: what the conformance suite compares kernels with."""

from collections.abc import Callable
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare results by the largest number of each: sums lose what their terms cancel."""
    from custom_pypto_testing.comparison import TOLERANCES, Tolerance, assert_tensors_close

    actual, expected = (each if isinstance(each, tuple) else (each,) for each in (actual, expected))
    assert len(actual) == len(expected)
    for place, (have, want) in enumerate(zip(actual, expected, strict=True)):
        usual = TOLERANCES[want.dtype]
        finite = want[want.isfinite()].abs().double()
        most = float(finite.max()) if finite.numel() else 0.0
        numbers = torch.float64 if want.dtype == torch.float64 else torch.float32
        absolute = max(most, 1e-3) * (1e-11 if numbers == torch.float64 else 2e-5)
        tolerance = Tolerance(usual.relative, absolute, usual.cosine)
        assert_tensors_close(f"output {place}", have, want, {want.dtype: tolerance})
    del sample


def pre(
    x: Tensor,
    phi: Tensor,
    alpha: Tensor,
    bias: Tensor,
    *,
    gamma: Tensor | None = None,
    norm_eps: float = 1e-6,
    hc_eps: float = 1e-6,
    out_flag: int = 0,
    inner_precise: int = 0,
) -> tuple[Tensor, ...]:
    """npu_mhc_pre."""
    n, dtype = x.shape[-2], alpha.dtype
    flat = x.double().flatten(-2)
    weighted = flat if gamma is None else flat * gamma.double().flatten()
    weight = phi.double()
    if inner_precise == 1 and dtype != torch.float64:
        weighted, weight = _to_hf32(weighted), _to_hf32(weight)
    inv_rms = (flat.square().mean(-1) + norm_eps).rsqrt()
    h_mix = weighted @ weight.T
    sizes = [n, n, n * n][: len(alpha)]
    parts = torch.split(h_mix * inv_rms.unsqueeze(-1), sizes, -1)
    parts = tuple(
        part * factor + offset
        for part, factor, offset in zip(
            parts, alpha.double(), torch.split(bias.double(), sizes), strict=True
        )
    )
    h_pre = parts[0].sigmoid() + hc_eps
    h_post = 2 * parts[1].sigmoid()
    h_res = (
        parts[2].reshape(*x.shape[:-1], n) if len(parts) == 3 else x.new_empty((*x.shape[:-1], 0))
    )
    h_in = (h_pre.unsqueeze(-1) * x.double()).sum(-2)
    kept = [each if out_flag else each.new_empty(0) for each in (inv_rms, h_mix, h_pre)]
    return (h_in.to(x.dtype), *(each.to(dtype) for each in (h_post, h_res, *kept)))


def _to_hf32(x: Tensor) -> Tensor:
    bits = x.float().view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x.float()).double()


def pre_backward(
    x: Tensor,
    phi: Tensor,
    alpha: Tensor,
    grad_h_in: Tensor,
    grad_h_post: Tensor,
    grad_h_res: Tensor,
    inv_rms: Tensor,
    h_mix: Tensor,
    h_pre: Tensor,
    h_post: Tensor,
    gamma: Tensor | None = None,
    hc_eps: float = 1e-6,
    grad_x_post: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """npu_mhc_pre_backward, by the formulas of aclnnMhcPreBackward.md."""
    n, number = x.shape[-2], alpha.dtype
    kept = (x, phi, grad_h_in, grad_h_post, grad_h_res, inv_rms, h_mix, h_pre, h_post)
    wide, weight, d_in, d_post, d_res, inv, mix, pre_gate, post_gate = (
        each.double() for each in kept
    )
    scale = torch.ones_like(weight[0]) if gamma is None else gamma.double().flatten()
    gate = pre_gate - hc_eps
    d_bias = torch.cat(
        [
            (d_in.unsqueeze(-2) * wide).sum(-1) * gate * (1 - gate),
            d_post * post_gate * (1 - post_gate / 2),
            d_res.flatten(-2),
        ],
        -1,
    )
    sizes = [n, n, n * n][: len(alpha)]
    factors = alpha.double().repeat_interleave(torch.tensor(sizes, device="cpu"))
    d_normed = d_bias * factors
    inv = inv.unsqueeze(-1)
    d_mix = d_normed * inv
    flat = wide.flatten(-2)
    d_weighted = d_mix @ weight
    d_flat = d_weighted * scale
    d_flat = d_flat - (d_normed * mix).sum(-1, keepdim=True) * inv**3 / flat.shape[-1] * flat
    d_x = d_flat.reshape(x.shape) + pre_gate.unsqueeze(-1) * d_in.unsqueeze(-2)
    if grad_x_post is not None:
        d_x = d_x + grad_x_post.double()
    rows = (d_bias * mix * inv).flatten(0, -2).sum(0)
    d_alpha = torch.stack([part.sum() for part in torch.split(rows, sizes)])
    d_phi = d_mix.flatten(0, -2).T @ (flat * scale).flatten(0, -2)
    d_gamma = (flat * d_weighted).flatten(0, -2).sum(0).reshape(x.shape[-2:])
    if gamma is None:
        d_gamma = torch.zeros_like(d_gamma)
    grads = (d_phi, d_alpha, d_bias.flatten(0, -2).sum(0), d_gamma)
    return (d_x.to(x.dtype), *(each.to(number) for each in grads))


def sinkhorn(
    x: Tensor, *, eps: float = 1e-6, num_iters: int = 20, out_flag: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_mhc_sinkhorn."""
    n = x.shape[-1]
    matrices = x.double().reshape(-1, n, n)
    steps, sums = [matrices.softmax(-1)], [torch.ones_like(matrices[..., 0])]
    result = steps[0] + eps
    for step in range(1, 2 * num_iters):
        dim = -2 if step % 2 else -1
        sums.append(result.sum(dim) + eps)
        result = result / sums[-1].unsqueeze(dim)
        steps.append(result)
    norm, total = x.new_empty(0), x.new_empty(0)
    if out_flag:
        of_norm, of_sum = _places(len(matrices), n, 2 * num_iters)
        norm = x.new_zeros(of_sum.numel() * n)
        norm[of_norm] = torch.stack(steps).to(x.dtype)
        # The numbers that fill the sums of rows up are ones.
        total = x.new_zeros(of_sum.numel())
        total[of_sum[::2]] = 1
        total[of_sum[..., :n]] = torch.stack(sums).to(x.dtype)
    return result.reshape(x.shape).to(x.dtype), norm, total


def sinkhorn_backward(grad_y: Tensor, norm: Tensor, sum: Tensor) -> Tensor:  # noqa: A002
    """npu_mhc_sinkhorn_backward."""
    n = grad_y.shape[-1]
    grad = grad_y.double().reshape(-1, n, n)
    of_norm, of_sum = _places(len(grad), n, sum.numel() // max(8 * len(grad), 1))
    results, sums = norm.double()[of_norm], sum.double()[of_sum[..., :n]]
    for step in range(len(results) - 1, -1, -1):
        dim = -2 if step % 2 else -1
        grad = grad - (grad * results[step]).sum(dim, keepdim=True)
        # The first step is the softmax.
        grad = grad / sums[step].unsqueeze(dim) if step else grad * results[0]
    return grad.reshape(grad_y.shape).to(grad_y.dtype)


def _places(tokens: int, n: int, steps: int) -> tuple[Tensor, Tensor]:
    """Return where norm has the numbers of each step, and sum, filled up to 8 for each token.

    [steps, tokens, n, n] and [steps, tokens, 8]. csrc/sinkhorn_tiles.h explains the tiles.
    """
    of_core = max(-(-tokens // 64), 1)

    def size(count: int) -> int:
        return 4 * (2 * (-(-count * n * n // 8) * 8) + 16 * count * (n + 1))

    memory = (248 * 1024 - 64 - 512) // 2
    of_tile = of_core if size(of_core) <= memory else memory // size(1) // 8 * 8
    token = torch.arange(tokens, device="cpu")
    first = token // of_core * of_core
    first = first + (token - first) // of_tile * of_tile
    end = torch.minimum(first // of_core * of_core + of_core, first + of_tile).clamp(max=tokens)
    count, at = (end - first)[:, None], (token - first)[:, None]
    step = torch.arange(steps, device="cpu")[:, None, None]
    number = torch.arange(8, device="cpu")
    begin = steps * 8 * first[:, None]
    by_row = step * 8 * count + number * count + at
    by_column = step * 8 * count + at * 8 + number
    row = ((step * n + number[:n]) * count + at) * 8
    return (begin * n + row)[..., None] + number[:n], begin + torch.where(
        step % 2 == 0, by_row, by_column
    )


def post(x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor) -> Tensor:
    """npu_mhc_post."""
    mixed = x.double() if h_res is None else h_res.double().transpose(-1, -2) @ x.double()
    return (mixed + h_post.double().unsqueeze(-1) * h_out.double().unsqueeze(-2)).to(x.dtype)


def post_backward(
    grad_y: Tensor, x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """npu_mhc_post_backward."""
    grad, dtype = grad_y.double(), h_post.dtype
    d_x = grad if h_res is None else h_res.double() @ grad
    d_res = x.double() @ grad.transpose(-1, -2)
    d_out = (grad * h_post.double().unsqueeze(-1)).sum(-2)
    d_post = (grad * h_out.double().unsqueeze(-2)).sum(-1)
    return d_x.to(x.dtype), d_res.to(dtype), d_out.to(x.dtype), d_post.to(dtype)


OF_OPS: dict[str, Callable[..., Any]] = {
    f"npu_mhc_{each.__name__}": each
    for each in (pre, pre_backward, sinkhorn, sinkhorn_backward, post, post_backward)
}
"""The reference of each op."""
