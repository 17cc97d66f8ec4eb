"""npu_quant_lightning_indexer: exact results at every instruction set, scales, errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_lightning_indexer import comparison, reference
from custom_pypto_lightning_indexer.samples import Sizes, paged, quantised
from custom_pypto_plugin import SampleInput
from torch import Tensor

CSRC = Path(__file__).parents[1] / "csrc"
SUMS = cpp_constant(CSRC, "kHeadSums")
TOKEN_BLOCK = cpp_constant(CSRC, "kTokenBlock")


def op(*args: Any, **kwargs: Any) -> Tensor:
    result: Tensor = torch.ops.custom_pypto.npu_quant_lightning_indexer(*args, **kwargs)
    return result


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
    expected = reference.quant_lightning_indexer(*sample.args, **sample.kwargs)
    comparison.compare_quant(op(*sample.args, **sample.kwargs), expected, sample)


def scores_of(query: Tensor, key: Tensor, factors: Tensor, scales: Tensor) -> Tensor:
    """fp32 scores of keys [T, D] in the order of int8_score.h, which every instruction set keeps.

    query [N1, D], factors [N1] (weights times scales), scales [T].
    """
    dots = torch.relu(query.double() @ key.double().T).float()
    sums = torch.zeros(SUMS, len(key))
    for head, dot in enumerate(dots):
        sums[head % SUMS] += dot * factors[head]
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0] * scales


@pytest.mark.parametrize("heads", [1, 5, 16, 33, 64, 130])
@pytest.mark.parametrize("depth", [1, 7, 64, 128, 131])
def test_results_have_the_same_bits_at_every_instruction_set(heads: int, depth: int) -> None:
    tokens = TOKEN_BLOCK + 7
    sample = extreme(Sizes([tokens], 1, heads, depth=depth), sparse_count=tokens)
    query, key, weights, query_scale, key_scale = sample.args[:5]
    blocks = sample.kwargs["block_table"][0].long()
    scores = scores_of(
        query[0, 0],
        key[blocks].flatten(0, 1)[:tokens, 0],
        weights[0, 0].float() * query_scale[0, 0].float(),
        key_scale[blocks].flatten(0, 1)[:tokens, 0].float(),
    )
    expected = scores.argsort(descending=True, stable=True)
    assert op(*sample.args, **sample.kwargs).flatten().tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_random_paged_batches(seed: int) -> None:
    def pick(*choices: int) -> int:
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    generator = torch.Generator().manual_seed(seed)
    key_heads = pick(1, 1, 3)
    sizes = Sizes(
        key_lengths=torch.randint(0, pick(3, 150), (pick(1, 3),), generator=generator).tolist(),
        query_tokens=pick(1, 2, 9),
        heads=key_heads * pick(1, 3, 16, 37, 64, 80),
        key_heads=key_heads,
        depth=pick(1, 7, 64, 128, 130),
        block_size=pick(1, 3, 16, 128),
        weights_dtype=torch.float32 if pick(0, 1) else None,
        seed=seed,
    )
    for sparse_mode, sparse_count in ((3, 1), (0, 50), (3, 2048)):
        assert_right(extreme(sizes, sparse_mode=sparse_mode, sparse_count=sparse_count))


@pytest.mark.parametrize("argument", range(5))
def test_gaps_between_elements(argument: int) -> None:
    sample = extreme(Sizes([100, 33], heads=12, key_heads=2), sparse_count=40)
    args = list(sample.args)
    expected = op(*args, **sample.kwargs)
    args[argument] = torch.stack([args[argument], args[argument]], -1)[..., 1]
    assert op(*args, **sample.kwargs).equal(expected)


@pytest.mark.parametrize("argument", [1, 4])
def test_keys_and_scales_that_are_part_of_a_larger_cache(argument: int) -> None:
    sample = extreme(Sizes([100, 33]), sparse_count=40)
    args = list(sample.args)
    expected = op(*args, **sample.kwargs)
    args[argument] = torch.cat([args[argument]] * 2, 1)[:, : args[argument].shape[1]]
    assert not args[argument].is_contiguous()
    assert op(*args, **sample.kwargs).equal(expected)


def test_scales_may_be_float32() -> None:
    sample = extreme(Sizes([100, 33]), sparse_count=40)
    args = [x.float() if x.dtype == torch.float16 else x for x in sample.args[:5]]
    expected = op(*sample.args, **sample.kwargs)
    assert op(*args, 0, 0, **sample.kwargs).equal(expected)


def test_the_number_of_threads_does_not_matter() -> None:
    sample = extreme(Sizes([5000, 700], 3, 64, block_size=128), sparse_count=300)
    threads = torch.get_num_threads()
    results = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        results.append(op(*sample.args, **sample.kwargs))
    torch.set_num_threads(threads)
    assert results[0].equal(results[1])
    assert results[0].equal(results[2])


def select(key: list[int], scales: list[float], query_scale: float = 1.0) -> list[int]:
    """The order of keys of one number, for one head of number 1 and weight 1."""
    count = len(key)
    result = op(
        torch.ones(1, 1, 1, 1, dtype=torch.int8),
        torch.tensor(key, dtype=torch.int8).reshape(1, count, 1, 1),
        torch.ones(1, 1, 1).half(),
        torch.full((1, 1, 1), query_scale).half(),
        torch.tensor(scales).half().reshape(1, count, 1),
        *(0, 0),
        sparse_count=count,
        sparse_mode=0,
    )
    order: list[int] = result.flatten().tolist()
    return order


def test_a_larger_scale_of_a_key_is_a_higher_score() -> None:
    assert select([10, 10, -10, 4], [1.0, 2.0, 8.0, 0.5]) == [1, 0, 3, 2]


def test_scales_are_applied_after_the_relu() -> None:
    # 10 * -1, 0 * -1 (the relu of -10), 10 * 1
    assert select([10, -10, 10], [-1.0, -1.0, 1.0]) == [2, 1, 0]
    assert select([10, -10, 4], [1.0, 1.0, 1.0], query_scale=-1.0) == [1, 2, 0]


def test_a_scale_of_zero_gives_zero() -> None:
    assert select([10, 3, -5, 1], [0.0, 1.0, 1.0, -0.0]) == [1, 0, 2, 3]


def test_infinite_scales_come_first_or_are_nan_and_last() -> None:
    inf = float("inf")
    # 1, inf * 0 = NaN, inf, -inf
    assert select([1, -1, 1, 1], [1.0, inf, inf, -inf]) == [2, 0, 3, 1]
    assert select([1, -1, 2], [1.0, 1.0, 1.0], query_scale=inf) == [0, 2, 1]


def test_keys_with_nan_scales_come_last() -> None:
    assert select([5, 9, 1], [1.0, float("nan"), 1.0]) == [0, 2, 1]


REFUSED = {
    "query_quant_mode": (1, "must be 0, got 1"),
    "key_quant_mode": (2, "must be 0, got 2"),
    "pre_tokens": (5, "must be 9223372036854775807, got 5"),
    "next_tokens": (5, "must be 9223372036854775807, got 5"),
    "query_dtype": (1, "must be None: query is int8, got 1"),
    "key_dtype": (1, "must be None: key is int8, got 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_is_refused(name: str) -> None:
    value, message = REFUSED[name]
    sample = quantised(paged("cpu", "", Sizes([20])))
    given = {"query_quant_mode": 0, "key_quant_mode": 0, **sample.kwargs, name: value}
    with pytest.raises(RuntimeError, match=rf"npu_quant_lightning_indexer: argument '{name}'") as e:
        op(*sample.args[:5], **given)
    assert str(e.value).endswith(message)


def test_errors_of_lengths_name_this_op() -> None:
    sample = quantised(paged("cpu", "", Sizes([20])))
    given = {**sample.kwargs, "actual_seq_lengths_key": torch.tensor([-1])}
    with pytest.raises(RuntimeError, match=r"npu_quant_lightning_indexer: argument 'actual_seq"):
        op(*sample.args, **given)
