"""The published sizes, kind of data and pass rule.

What is expected is computed here, from the op's definition alone: a mistake that kernel, reference
and comparison of the plugin share would show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples
from torch import Tensor
from torch.nn import functional

Op = Callable[..., tuple[Tensor, Tensor, Tensor]]

HIDDEN, HEADS, SIZE, ROPE = 7168, 64, 128, 64
RTOL, ATOL, PART = 0.005, 1e-4, 0.995
TOKENS = 8
"""Four sequences of 65536 tokens, two new ones of each."""


def arguments(tokens: int, blocks: int) -> dict[str, Any]:
    sizes = replace(samples.DEEPSEEK, tokens=tokens, blocks=blocks, epsilon=1e-6)
    given: dict[str, Any] = samples.arguments(sizes)
    for name in ("q_norm_scale", "wq_b_scale"):
        given[name] = given[name] * 100
    given["ln_gamma_k"].fill_(1)
    given["ln_beta_k"].zero_()
    return given


def rotated(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """x [T, n, D] with its first dims, even ones before odd ones, rotated by angles [T, R]."""
    apart = x[..., :ROPE].float().unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    first, second = apart.chunk(2, -1)
    across = torch.cat([-second, first], -1)
    front = apart * cos.float()[:, None] + across * sin.float()[:, None]
    return torch.cat([front.bfloat16(), x[..., ROPE:]], -1)


def quantised(x: Tensor) -> tuple[Tensor, Tensor]:
    largest = x.float().abs().amax(-1, keepdim=True)
    factor = torch.full_like(largest, 127) / largest
    return (x.float() * factor).round().to(torch.int8), (1 / factor).half()


def expected(a: dict[str, Any]) -> dict[str, Tensor]:
    """The five tensors: what is returned, and the rows that the caches get."""
    angles = a["sin_idx_rope"], a["cos_idx_rope"]
    # fp64 holds these integers exactly.
    sums = (a["q_norm"].double() @ a["wq_b"].double()).float()
    q = (sums * a["q_norm_scale"] * a["wq_b_scale"].T).bfloat16().unflatten(-1, (HEADS, SIZE))
    q = (rotated(q, *angles).float() @ a["hadamard_q"].float()).bfloat16()
    query, query_scale = quantised(q)
    x = a["token_x"].float()
    norm = a["ln_gamma_k"].float(), a["ln_beta_k"].float()
    k = functional.layer_norm(x @ a["wk"].float(), (SIZE,), *norm, a["layernorm_epsilon_k"])
    k = rotated(k.bfloat16()[:, None], *angles)[:, 0]
    key, key_scale = quantised((k.float() @ a["hadamard_k"].float()).bfloat16())
    weights = (x @ a["weights_proj"].float()).bfloat16().float() * HEADS**-0.5 * SIZE**-0.5
    return {
        "query": query,
        "query_scale": query_scale,
        "weights": weights.half(),
        "idx_k_cache": key,
        "idx_k_scale_cache": key_scale,
    }


def check(op: Op, given: dict[str, Any], right: dict[str, Tensor]) -> None:
    """The published rule, on the rows that are written; no other slot may change."""
    before = {name: given[name].clone() for name in ("idx_k_cache", "idx_k_scale_cache")}
    actual = dict(zip(("query", "query_scale", "weights"), op(**given), strict=True))
    slots = given["idx_k_cache_index"]
    for name, old in before.items():
        rows, size = given[name].flatten(0, 1), right[name].shape
        actual[name] = rows[slots].reshape(size)
        rows[slots] = old.flatten(0, 1)[slots]
        assert torch.equal(given[name], old), f"{name}: another slot was written"
    for name, tensor in actual.items():
        close = tensor.float().isclose(right[name].float(), rtol=RTOL, atol=ATOL)
        part = close.float().mean().item()
        assert part >= PART, f"{name}: {part:.3%} of the elements are close; {PART:.1%} must be"


@pytest.mark.parametrize("tokens", [1, TOKENS, 32])
def test_published_sizes(prolog: Op, tokens: int) -> None:
    given = arguments(tokens, blocks=2048 if tokens == TOKENS else 4)
    check(prolog, given, expected(given))


@pytest.fixture(scope="module")
def some() -> tuple[dict[str, Any], dict[str, Tensor]]:
    given = arguments(2, blocks=2)
    return given, expected(given)


@pytest.mark.parametrize(
    ("name", "part", "factor", "message"),
    [
        ("q_norm_scale", slice(1), 2.0, "query_scale"),
        ("wq_b_scale", slice(8), 1.5, "query"),
        ("wk", slice(HIDDEN // 4), 1.25, "idx_k_cache"),
        ("weights_proj", slice(HIDDEN // 4), 1.25, "weights"),
        ("ln_gamma_k", slice(8), 1.25, "idx_k_cache"),
        ("sin_idx_rope", slice(1), -1, "query"),
        ("hadamard_q", slice(8), 1.25, "query"),
        ("hadamard_k", slice(8), 1.25, "idx_k_cache"),
    ],
)
def test_a_part_that_is_scaled_is_found(
    prolog: Op,
    some: tuple[dict[str, Any], dict[str, Tensor]],
    name: str,
    part: slice,
    factor: float,
    message: str,
) -> None:
    given, right = some
    scaled = given[name].clone()
    scaled[part] *= factor
    with pytest.raises(AssertionError, match=f"^{message}: .* are close"):
        check(prolog, {**given, name: scaled}, right)
