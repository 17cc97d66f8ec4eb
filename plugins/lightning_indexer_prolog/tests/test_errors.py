"""Calls that the op refuses, with the errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer_prolog import OP, samples
from refusals import assert_refused


@pytest.fixture
def arguments() -> dict[str, Any]:
    return samples.arguments(samples.SMALL)


@pytest.mark.parametrize("slot", [-1, 5 * 16, -(2**31), 2**40])
@pytest.mark.parametrize("token", [0, 2])
def test_a_slot_outside_the_cache(arguments: dict[str, Any], slot: int, token: int) -> None:
    arguments["idx_k_cache_index"][token] = slot
    text = f"must hold slots from 0 to 79 (5 blocks of 16), got {slot} for token {token}"
    assert_refused(OP, arguments, "idx_k_cache_index", text, is_of_values=True)


def test_a_rank_whose_sums_may_not_fit_int32(arguments: dict[str, Any]) -> None:
    arguments["q_norm"] = torch.empty(3, 2**17, dtype=torch.int8)
    arguments["wq_b"] = torch.empty(2**17, 128, dtype=torch.int8)
    assert_refused(OP, arguments, "wq_b", "must have fewer than 131072 rows")
