"""Edges of products, of the quantisation and of slots, and wrong slots."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import custom_pypto.core  # noqa: F401
import custom_pypto_blocks
import pytest
import torch
from cpp_constant import cpp_constant, cpp_constants
from custom_pypto_lightning_indexer_prolog import OP, projection_comparison, reference, samples
from custom_pypto_plugin import SampleInput
from refusals import assert_refused

CPU = Path(custom_pypto_blocks.__file__).parent / "include" / "custom_pypto_blocks" / "cpu"
BLOCKS = [cpp_constants(CPU, name) for name in ("kFewRows", "kMoreRows", "kManyRows")]
"""The three ways to cut a product into blocks: panels, steps, and rows up to which it is taken."""
FEW_ROWS = cpp_constant(CPU, "kFewInt8Rows")
"""Rows up to which an int8 product is cut in the first way."""
prolog = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
CACHES = ("idx_k_cache", "idx_k_scale_cache")


def own(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with caches of their own."""
    return {**arguments, **{name: arguments[name].clone() for name in CACHES}}


def check(arguments: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Compare with the reference; the caches of `arguments` are written."""
    expected, sample = own(arguments), SampleInput((), arguments)
    results: tuple[torch.Tensor, ...] = prolog(**arguments)
    projection_comparison.compare(results, reference.prolog(**expected), sample)
    projection_comparison.compare_caches(
        {name: arguments[name] for name in CACHES},
        {name: expected[name] for name in CACHES},
        sample,
    )
    return results


def key_rows(arguments: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens' rows of the caches: [T, D] and [T]."""
    slots = arguments["idx_k_cache_index"].long()
    return (
        arguments["idx_k_cache"].flatten(0, 2)[slots],
        arguments["idx_k_scale_cache"].flatten()[slots],
    )


TOKENS = [1, 2, 5, FEW_ROWS, FEW_ROWS + 1, 32]
TOKENS += [rows + more for _, _, rows in BLOCKS[:2] for more in (0, 1)]


@pytest.mark.parametrize("tokens", TOKENS)
def test_few_and_many_tokens(tokens: int) -> None:
    check(samples.arguments(replace(samples.WIDE, tokens=tokens, blocks=tokens)))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 7, *(4 * steps + 1 for _, steps, _ in BLOCKS)])
def test_ranks_of_any_number_of_steps(rank: int) -> None:
    check(samples.arguments(replace(samples.ODD, query_rank=rank)))


@pytest.mark.parametrize(("left", "right"), [(-128, -128), (-128, 127), (127, -128), (127, 127)])
def test_sums_of_the_largest_products_are_exact(left: int, right: int) -> None:
    """The rank is a model's. Instructions that saturate on the way would show in the scales."""
    arguments = samples.arguments(replace(samples.SMALL, query_rank=samples.DEEPSEEK.query_rank))
    arguments["q_norm"].fill_(left)
    arguments["wq_b"].fill_(right)
    arguments["wq_b_scale"].fill_(1e-3)
    check(arguments)


def test_one_number_of_the_query_is_one_row_of_the_weight() -> None:
    """The int32 sums themselves, by an op that does nothing else: no rounding hides an error."""
    sizes = replace(samples.SMALL, tokens=2, query_rank=70, heads=2, size=96, rope=2)
    arguments = samples.arguments(sizes)
    arguments["q_norm"].zero_()
    arguments["q_norm"][0, 66], arguments["q_norm"][1, 3] = 1, -1
    # Rows whose largest magnitude is 127 are quantised to themselves.
    arguments["wq_b"][66] = torch.arange(-64, 128).to(torch.int8)
    arguments["wq_b"][3] = torch.arange(-127, 65).to(torch.int8)
    for name in ("q_norm_scale", "wq_b_scale"):
        arguments[name].fill_(1)
    arguments["wq_b"][:, ::96] = arguments["wq_b"][:, 1::96] = 127
    arguments["cos_idx_rope"].fill_(1)
    arguments["sin_idx_rope"].zero_()
    arguments["hadamard_q"] = torch.eye(96).bfloat16()
    query, scale, _ = prolog(**arguments)
    assert torch.equal(query[0].flatten(), arguments["wq_b"][66])
    assert torch.equal(query[1].flatten(), -arguments["wq_b"][3])
    assert scale.eq(1).all()


def test_rows_of_zeros_give_zeros_and_scale_zero() -> None:
    arguments = samples.arguments(samples.WIDE)
    arguments["q_norm"][4] = 0
    arguments["token_x"][7] = 0
    arguments["ln_beta_k"].zero_()
    query, scale, weights = check(arguments)
    keys, key_scales = key_rows(arguments)
    for zeros in (query[4], scale[4], weights[7], keys[7], key_scales[7]):
        assert zeros.eq(0).all()
    for each in (scale, weights, key_scales):
        assert each.isfinite().all()
    assert scale[3].gt(0).all()
    assert key_scales[6] > 0


def test_a_row_too_small_for_a_factor_gives_zeros_and_scale_zero() -> None:
    arguments = samples.arguments(samples.SMALL)
    arguments["q_norm_scale"].fill_(1e-37)
    arguments["wq_b_scale"].fill_(1e-5)
    query, scale, _ = prolog(**arguments)
    assert query.eq(0).all()
    assert scale.eq(0).all()


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_a_token_that_is_not_finite_shows_in_its_scale_alone(value: float) -> None:
    arguments = samples.arguments(samples.WIDE)
    expected = own(arguments)
    prolog(**expected)
    arguments["token_x"][3, 5] = value
    prolog(**arguments)
    (keys, scales), (clean, clean_scales) = key_rows(arguments), key_rows(expected)
    others = torch.arange(len(keys)) != 3
    assert scales[3].isnan()
    assert keys[3].eq(0).all()
    assert torch.equal(keys[others], clean[others])
    assert torch.equal(scales[others], clean_scales[others])


def test_of_equal_slots_the_last_token_wins() -> None:
    arguments = samples.arguments(samples.WIDE)
    alone = own(arguments)
    prolog(**alone)
    keys, scales = key_rows(alone)
    arguments["idx_k_cache_index"][5:20] = arguments["idx_k_cache_index"][5]
    prolog(**arguments)
    written, written_scales = key_rows(arguments)
    assert written[5:20].eq(keys[19]).all()
    assert written_scales[5:20].eq(scales[19]).all()


def test_a_tokens_result_does_not_depend_on_other_tokens() -> None:
    arguments = samples.arguments(samples.WIDE)
    together = prolog(**own(arguments))
    of_tokens = ("token_x", "q_norm", "q_norm_scale", "cos_idx_rope", "sin_idx_rope")
    for token in (0, 20, samples.WIDE.tokens - 1):
        one = slice(token, token + 1)
        given = own(arguments)
        for name in (*of_tokens, "idx_k_cache_index"):
            given[name] = given[name][one]
        for left, right in zip(together, prolog(**given), strict=True):
            assert torch.equal(left[one], right)


@pytest.mark.parametrize("slot", [-1, 5 * 16, -(2**31), 2**40])
@pytest.mark.parametrize("token", [0, 2])
def test_a_slot_outside_the_cache_is_refused(slot: int, token: int) -> None:
    arguments = samples.arguments(samples.SMALL)
    arguments["idx_k_cache_index"][token] = slot
    text = f"must hold slots from 0 to 79 (5 blocks of 16), got {slot} for token {token}"
    assert_refused(OP, arguments, "idx_k_cache_index", text, is_of_values=True)
