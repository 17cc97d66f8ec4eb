"""What the op refuses by its values, in which words; and that refusing leaves the caches alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples

Op = Callable[..., Any]
CACHES = ("idx_k_cache", "idx_k_scale_cache")


@pytest.mark.parametrize("slot", [-1, 5 * 16, -(2**31), 2**40])
@pytest.mark.parametrize("token", [0, 2])
def test_a_slot_outside_the_cache(prolog: Op, slot: int, token: int) -> None:
    arguments: dict[str, Any] = samples.arguments(samples.SMALL)
    arguments["idx_k_cache_index"][token] = slot
    before = {name: arguments[name].clone() for name in CACHES}
    message = (
        "npu_lightning_indexer_prolog_pto: argument 'idx_k_cache_index' must hold slots from 0 to"
        f" 79 (5 blocks of 16), got {slot} for token {token}"
    )
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        prolog(**arguments)
    for name in CACHES:
        assert torch.equal(arguments[name], before[name])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("layernorm_epsilon_k", 0.0, "argument 'layernorm_epsilon_k' must be more than 0, got 0"),
        ("layout_query", "BSND", "argument 'layout_query' must be 'TND', got 'BSND'"),
        ("layout_key", "TND", "argument 'layout_key' must be 'PA_BSND', got 'TND'"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_wrong_option(prolog: Op, name: str, value: Any, message: str, device: str) -> None:
    arguments: dict[str, Any] = samples.arguments(samples.SMALL, device)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        prolog(**{**arguments, name: value})


def test_a_rank_whose_sums_may_not_fit_int32(prolog: Op) -> None:
    arguments: dict[str, Any] = samples.arguments(samples.SMALL, "meta")
    arguments["q_norm"] = torch.empty(3, 2**17, dtype=torch.int8, device="meta")
    arguments["wq_b"] = torch.empty(2**17, 128, dtype=torch.int8, device="meta")
    with pytest.raises(RuntimeError, match="'wq_b' must have fewer than 131072 rows"):
        prolog(**arguments)
