"""npu_quant_lightning_indexer: int8 exact at every instruction set, float8, scales."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_lightning_indexer import QUANT_OP, reference, selection_comparison
from custom_pypto_lightning_indexer.samples import Sizes, paged, quantised
from custom_pypto_plugin import SampleInput

op = torch.ops.custom_pypto.npu_quant_lightning_indexer
CSRC = Path(__file__).parents[1] / "csrc"
SUMS = cpp_constant(CSRC, "kHeadSums")
TOKEN_BLOCK = cpp_constant(CSRC, "kTokenBlock")


def extreme(sizes: Sizes, **options: Any) -> SampleInput:
    """A sample whose int8 numbers are all of int8, -128 too."""
    sample = quantised(paged("cpu", "", sizes, **options))
    generator = torch.Generator().manual_seed(sizes.seed)
    query, key = (
        torch.randint(-128, 128, x.shape, generator=generator, dtype=torch.int8)
        for x in sample.args[:2]
    )
    return replace(sample, args=(query, key, *sample.args[2:]))


def assert_right(sample: SampleInput) -> None:
    expected = reference.select(QUANT_OP, *sample.args, **sample.kwargs)
    selection_comparison.compare(QUANT_OP, op(*sample.args, **sample.kwargs), expected, sample)


SIGNED: tuple[tuple[int, ...], ...] = ((), (3,), (4,), (3, 4))
"""Arguments whose scales get signs: of the query, of the key, of both."""


def with_signs(sample: SampleInput, *arguments: int) -> SampleInput:
    """`sample` with half of the scales of these arguments negative."""
    args = list(sample.args)
    generator = torch.Generator().manual_seed(0)
    for argument in arguments:
        shape = args[argument].shape
        args[argument] = args[argument] * (1 - 2 * torch.randint(2, shape, generator=generator))
    return replace(sample, args=tuple(args))


def order_of(sample: SampleInput) -> list[int]:
    """The positions that fp32 scores in the order of int8_score.h give, at any instruction set.

    Of a sample of one sequence, query token and key head that selects all keys.
    """
    query, key, weights, query_scales, key_scales = sample.args[:5]
    count = sample.kwargs["sparse_count"]
    blocks = sample.kwargs["block_table"][0].long()
    keys, scales = (x[blocks].flatten(0, 1)[:count, 0] for x in (key, key_scales))
    signs = query_scales[0, 0].double().sign()[:, None] * scales.double().sign()
    factors = weights[0, 0].float() * query_scales[0, 0].float().abs()
    dots = torch.relu(signs * (query[0, 0].double() @ keys.double().T)).float()
    sums = torch.zeros(SUMS, count)
    for head, dot in enumerate(dots):
        sums[head % SUMS] += dot * factors[head]
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return (sums[0] * scales.float().abs()).argsort(descending=True, stable=True).tolist()


@pytest.mark.parametrize("depth", [1, 7, 64, 128, 131])
def test_results_have_the_same_bits_at_every_instruction_set(depth: int) -> None:
    tokens = TOKEN_BLOCK + 7
    for heads, arguments in product((1, 5, 16, 33, 64, 130), SIGNED):
        plain = extreme(Sizes([tokens], 1, heads, depth=depth), sparse_count=tokens)
        sample = with_signs(plain, *arguments)
        assert op(*sample.args, **sample.kwargs).flatten().tolist() == order_of(sample)


def test_a_query_token_does_not_see_the_signs_of_others() -> None:
    tokens = 3 * TOKEN_BLOCK
    sample = extreme(Sizes([tokens], 3, 64), sparse_count=tokens, sparse_mode=0)
    expected = op(*sample.args, **sample.kwargs)
    sample.args[3][0, 1] *= -1
    result = op(*sample.args, **sample.kwargs)
    assert [result[0, token].equal(expected[0, token]) for token in range(3)] == [True, False, True]


@pytest.mark.parametrize("seed", range(5))
def test_random_paged_batches(random_sizes: Sizes, seed: int) -> None:
    for sparse_mode, sparse_count in ((3, 1), (0, 50), (3, 2048)):
        sample = extreme(random_sizes, sparse_mode=sparse_mode, sparse_count=sparse_count)
        assert_right(with_signs(sample, *SIGNED[seed % 4]))


E4M3 = torch.float8_e4m3fn


@pytest.mark.parametrize("depth", [1, 31, 64, 128, 130])
def test_float8_numbers_and_scales_of_both_signs(depth: int) -> None:
    tokens = TOKEN_BLOCK + 7
    for heads, arguments in product((1, 5, 33, 64, 130), SIGNED):
        sizes = Sizes([tokens, 3, 50], 2, heads, depth=depth, block_size=5)
        sample = quantised(paged("cpu", "", sizes, sparse_count=tokens), E4M3)
        assert_right(with_signs(sample, *arguments))


def order_of_numbers(key: torch.Tensor, scales: torch.Tensor, query_scale: float) -> list[int]:
    """The order of keys of one number each, for one head of number 1 and weight 1."""
    count = len(key)
    result = op(
        torch.ones(1, 1, 1, 1).to(key.dtype),
        key.reshape(1, count, 1, 1),
        torch.ones(1, 1, 1).half(),
        torch.full((1, 1, 1), query_scale).half(),
        scales.half().reshape(1, count, 1),
        *(0, 0),
        sparse_count=count,
        sparse_mode=0,
    )
    return result.flatten().tolist()


def test_every_float8_number_is_taken_as_it_is() -> None:
    numbers = torch.arange(256, dtype=torch.uint8).view(E4M3)
    scores = torch.relu(numbers.float()).nan_to_num(-1.0)  # NaN comes last
    order = scores.argsort(descending=True, stable=True).tolist()
    assert order_of_numbers(numbers, torch.ones(256), 1.0) == order


INF, NAN = float("inf"), float("nan")
# Keys of one number, their scales, the query's scale, and the order of the keys' scores.
ORDERS: list[tuple[list[int], list[float], float, list[int]]] = [
    ([10, 10, -10, 4], [1.0, 2.0, 8.0, 0.5], 1.0, [1, 0, 3, 2]),
    # The relu is of the dot product times its scales: relu(10 * -1), relu(-12 * -1), relu(10).
    ([10, -12, 10], [-1.0, -1.0, 1.0], 1.0, [1, 2, 0]),
    ([10, -10, -12], [-1.0, -1.0, 1.0], -1.0, [2, 0, 1]),
    # A scale of zero gives zero.
    ([10, 3, -5, 1], [0.0, 1.0, -1.0, -0.0], 1.0, [2, 1, 0, 3]),
    ([3, -4], [1.0, -1.0], -0.0, [0, 1]),
    # Infinite scales: 1, NaN, inf, NaN, inf.
    ([1, -1, 1, 1, -1], [1.0, INF, INF, -INF, -INF], 1.0, [2, 4, 0, 1, 3]),
    ([1, -1, 2], [1.0, 1.0, 1.0], INF, [0, 2, 1]),
    ([1, -1, 2], [1.0, 1.0, 1.0], -INF, [1, 0, 2]),
    # Keys whose scales are NaN come last.
    ([5, 9, 1], [1.0, NAN, 1.0], 1.0, [0, 2, 1]),
    ([5, 9, 1], [1.0, 1.0, 1.0], NAN, [0, 1, 2]),
]


@pytest.mark.parametrize("dtype", [torch.int8, E4M3], ids=str)
@pytest.mark.parametrize(("key", "scales", "query_scale", "order"), ORDERS)
def test_scales_decide_the_order(
    key: list[int], scales: list[float], query_scale: float, order: list[int], dtype: torch.dtype
) -> None:
    assert order_of_numbers(torch.tensor(key).to(dtype), torch.tensor(scales), query_scale) == order
