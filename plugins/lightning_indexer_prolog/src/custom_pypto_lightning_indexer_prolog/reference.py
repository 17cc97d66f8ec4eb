"""The op in plain PyTorch, step by step: slow, readable, independent of the kernels.

Products of int8 numbers are exact; all else is computed in fp64, except that the quantisation,
whose roundings are part of the definition, is in fp32. A value is rounded to bf16 exactly where the
definition in README.md says so.
"""

from __future__ import annotations

import torch
from torch import Tensor


def round_to_bf16(x: Tensor) -> Tensor:
    """x [..] in the precision of bf16, in fp64."""
    return x.bfloat16().double()


def rotate_first(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """x [T, heads, D] with its first R dims rotated by sin and cos [T, R]; even dims come first."""
    size = sin.shape[-1]
    even, odd = x[..., 0:size:2], x[..., 1:size:2]
    straight, crossed = torch.cat((even, odd), -1), torch.cat((-odd, even), -1)
    front = straight * cos.double().unsqueeze(-2) + crossed * sin.double().unsqueeze(-2)
    return torch.cat((round_to_bf16(front), x[..., size:]), -1)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """x [T, D] with mean 0 and variance 1, times gamma [D], plus beta [D]."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + epsilon) * gamma.double() + beta.double()


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [.., D] of the precision of bf16 as int8, and the fp16 scale [.., 1] that gives it back."""
    x = x.float()
    largest = x.abs().amax(-1, keepdim=True)
    # A number divided by a tensor is its product with a reciprocal to torch: rounded twice.
    factor = torch.full_like(largest, 127) / largest
    is_zero = factor.isinf()
    integers = torch.where(is_zero, 0.0, x * factor).round().to(torch.int8)
    return integers, torch.where(is_zero, 0.0, 1 / factor).half()


def scatter(cache: Tensor, slots: Tensor, rows: Tensor) -> None:
    """Write rows [T, ..] to cache [blocks, block_size, ..]; of equal slots the last token wins."""
    block_size = cache.shape[1]
    for slot, row in zip(slots.tolist(), rows, strict=True):
        cache[slot // block_size, slot % block_size] = row


def prolog(
    token_x: Tensor,
    q_norm: Tensor,
    q_norm_scale: Tensor,
    wq_b: Tensor,
    wq_b_scale: Tensor,
    wk: Tensor,
    weights_proj: Tensor,
    ln_gamma_k: Tensor,
    ln_beta_k: Tensor,
    cos_idx_rope: Tensor,
    sin_idx_rope: Tensor,
    hadamard_q: Tensor,
    hadamard_k: Tensor,
    idx_k_cache: Tensor,
    idx_k_scale_cache: Tensor,
    idx_k_cache_index: Tensor,
    layernorm_epsilon_k: float,
    *,
    layout_query: str | None = "TND",
    layout_key: str | None = "PA_BSND",
) -> tuple[Tensor, Tensor, Tensor]:
    """The op: query int8 [T, N, D], its scales fp16 [T, N, 1], weights fp16 [T, N]."""
    del layout_query, layout_key
    heads, size = weights_proj.shape[1], wk.shape[1]
    x = token_x.double()

    # Sums of less than 2^31 are exact in fp64; the scales are multiplied in fp32.
    sums = (q_norm.double() @ wq_b.double()).float()
    scaled = sums * q_norm_scale * wq_b_scale.reshape(1, -1)
    q = round_to_bf16(scaled).reshape(len(x), heads, size)
    q = round_to_bf16(rotate_first(q, sin_idx_rope, cos_idx_rope) @ hadamard_q.double())
    query, query_scale = quantise(q)

    k = round_to_bf16(layer_norm(x @ wk.double(), ln_gamma_k, ln_beta_k, layernorm_epsilon_k))
    k = rotate_first(k.unsqueeze(1), sin_idx_rope, cos_idx_rope)
    key, key_scale = quantise(round_to_bf16(k @ hadamard_k.double()))
    scatter(idx_k_cache, idx_k_cache_index, key)
    scatter(idx_k_scale_cache, idx_k_cache_index, key_scale.flatten(1))

    weights = round_to_bf16(x @ weights_proj.double()).float() * heads**-0.5 * size**-0.5
    return query, query_scale, weights.half()
