"""The lightning indexer at every instruction set: its plugin's tests of kernels, and splits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from custom_pypto_lightning_indexer import comparison, reference, samples
from custom_pypto_plugin import SampleInput
from indexer_op import select

from conftest import Kernels, Op
from plugins.lightning_indexer.tests.test_scores import (  # noqa: F401
    DTYPES,
    assert_right,
    random_sizes,
    test_a_key_scores_the_same_wherever_it_lies,
    test_empty_batch,
    test_gaps_between_elements,
    test_infinite_keys_do_not_disturb_lanes_without_a_head,
    test_keys_that_are_part_of_a_larger_cache,
    test_more_keys_than_are_selected,
)
from plugins.lightning_indexer.tests.test_selection import (  # noqa: F401
    test_equal_scores_go_to_the_lower_position,
    test_nan_comes_after_minus_inf_and_inf_first,
    test_sampled_positions_that_mislead,
    test_selects_the_best_in_order,
)

# An emulator is slow: batches with fewer multiplications than this.
FEW = 1_000_000


def multiplications(sizes: samples.Sizes) -> int:
    return sum(sizes.key_lengths) * sizes.query_tokens * sizes.heads * sizes.depth


SEEDS = [s for s in range(36) if multiplications(random_sizes(s, torch.float32)) < FEW]


@pytest.mark.parametrize(
    "sample", list(samples.lightning_indexer("cpu")), ids=lambda sample: sample.name
)
def test_samples_of_the_op(indexer: Op, sample: SampleInput) -> None:
    expected = reference.lightning_indexer(*sample.args, **sample.kwargs)
    comparison.compare(indexer(*sample.args, **sample.kwargs), expected, sample)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_paged_batches(indexer: Op, dtype: torch.dtype, seed: int) -> None:
    """The plugin's test of that name, with more batches, all small."""
    for sparse_mode, sparse_count in ((3, 1), (0, 50), (3, 2048)):
        sizes = random_sizes(seed, dtype)
        options: dict[str, Any] = {"sparse_mode": sparse_mode, "sparse_count": sparse_count}
        assert_right(indexer, samples.paged("cpu", "", sizes, **options))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_how_tokens_are_split(kernels: Kernels, dtype: torch.dtype) -> None:
    process = kernels("lightning_indexer")
    sizes = samples.Sizes([1500], 3, 64, depth=64, block_size=128, dtype=dtype)
    sample = samples.paged("cpu", "", sizes, sparse_count=1500)
    whole = select(process, *sample.args, **sample.kwargs)
    for split in (64, 448):
        assert select(process, *sample.args, **sample.kwargs, split=split).equal(whole)
