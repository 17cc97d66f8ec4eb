"""The published sizes, data and pass rule. What is expected follows from README.md alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples
from readme import run_page
from torch import Tensor

pytestmark = pytest.mark.slow
prolog = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
CACHES = ("idx_k_cache", "idx_k_scale_cache")
RTOL, ATOL, PART = 0.005, 1e-4, 0.995
TOKENS = 8
"""Four sequences of 65536 tokens, two new ones of each."""


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return run_page(Path(__file__).parents[1] / "README.md")


def arguments(tokens: int, blocks: int) -> dict[str, Any]:
    sizes = replace(samples.DEEPSEEK, tokens=tokens, blocks=blocks, epsilon=1e-6)
    given: dict[str, Any] = samples.arguments(sizes)
    for name in ("q_norm_scale", "wq_b_scale"):
        given[name] = given[name] * 100
    given["ln_gamma_k"].fill_(1)
    given["ln_beta_k"].zero_()
    return given


def expected(page: dict[str, Any], a: dict[str, Any]) -> dict[str, Tensor]:
    """The five tensors of the definition: the results, and the rows that the caches get."""
    caches = {name: a[name].clone() for name in CACHES}
    query, query_scale, weights = page["prolog"](*(a | caches).values())
    rows = {name: cache.flatten(0, 2)[a["idx_k_cache_index"]] for name, cache in caches.items()}
    return {"query": query, "query_scale": query_scale, "weights": weights, **rows}


def check(given: dict[str, Any], right: dict[str, Tensor]) -> None:
    """The published rule, on the rows that are written; no other slot may change."""
    before = {name: given[name].clone() for name in CACHES}
    actual = dict(zip(("query", "query_scale", "weights"), prolog(**given), strict=True))
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
def test_published_sizes(page: dict[str, Any], tokens: int) -> None:
    given = arguments(tokens, blocks=2048 if tokens == TOKENS else 4)
    check(given, expected(page, given))
