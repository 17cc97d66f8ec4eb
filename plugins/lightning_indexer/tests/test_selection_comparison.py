"""The comparison must fail for what is wrong, and pass for what rounding may do."""

import pytest
import torch
from custom_pypto_lightning_indexer import OP, reference, samples, selection_comparison
from custom_pypto_plugin import SampleInput


def sample_with(scores: list[float]) -> SampleInput:
    key = torch.tensor(scores).reshape(1, -1, 1, 1)
    one = torch.ones(1, 1, 1, 1)
    return SampleInput((one, key, one[0]), {"layout_key": "BSND", "sparse_count": 3}, "scores")


def compare(positions: list[int], scores: list[float]) -> None:
    sample = sample_with(scores)
    expected = reference.select(OP, *sample.args, **sample.kwargs)
    actual = torch.tensor(positions, dtype=torch.int32).reshape(1, 1, 1, -1)
    selection_comparison.compare(OP, actual, expected, sample)


@pytest.mark.parametrize(
    ("positions", "scores"),
    [([3, 1, 2], [1.0, 3.0, 2.0, 4.0]), ([1, 0, 3], [1.0, 1.0 - 2e-6, 0.25, 0.5])],
    ids=["the reference", "a swap of scores that are nearly equal"],
)
def test_accepts(positions: list[int], scores: list[float]) -> None:
    compare(positions, scores)


DISTINCT = [1.0, 3.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("positions", "scores", "message"),
    [
        ([1, 3, 2], DISTINCT, "place 0 is position 1"),
        ([3, 1, 0], DISTINCT, "place 2 is position 0 with score 1.0, but position 2 scores 2.0"),
        ([3, 1, 1], DISTINCT, "chosen twice"),
        ([3, 1, 4], DISTINCT, "positions below 4"),
        ([3, 1, -1], DISTINCT, "must hold 3 positions"),
        ([1, 0, 2], [1.0, torch.nan, 0.5], "score nan"),
    ],
)
def test_refuses_wrong_positions(positions: list[int], scores: list[float], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        compare(positions, scores)


def test_refuses_positions_in_a_row_that_sees_no_key() -> None:
    sample = sample_with([1.0, 2.0])
    sample.kwargs["actual_seq_lengths_key"] = torch.tensor([0])
    expected = torch.full((1, 1, 1, 3), -1, dtype=torch.int32)
    with pytest.raises(AssertionError, match="sees no key"):
        selection_comparison.compare(OP, torch.zeros_like(expected), expected, sample)


def test_magnitudes_are_scores_with_every_product_made_positive() -> None:
    sample = samples.paged("cpu", "", samples.Sizes([30], heads=6, key_heads=2))
    made_positive = [each.abs() for each in sample.args]
    rows = selection_comparison.rows(reference.bind(OP, sample.args, sample.kwargs))
    expected = reference.score_rows(reference.bind(OP, made_positive, sample.kwargs))
    for row, (_, scores) in zip(rows, expected, strict=True):
        torch.testing.assert_close(row.magnitudes, scores)
