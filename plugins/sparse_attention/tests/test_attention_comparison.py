"""The comparison accepts what is right and nothing else."""

from collections.abc import Callable

import pytest
import torch
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import attention_comparison, reference, samples
from custom_pypto_sparse_attention.ops import TOP_K
from torch import Tensor

SIZES = samples.LONG
Change = Callable[[Tensor, Tensor], object]


@pytest.fixture(scope="module")
def decoded() -> reference.Decoded:
    return reference.decode(samples.fused_arguments(SIZES))


# A change of a row of positions, by the order of its scores.
REJECTED: dict[str, Change] = {
    "a dropped key scores": lambda row, order: row[-1:].fill_(order[2400]),
    "a position was chosen twice": lambda row, order: row[:1].copy_(row[1]),
    "2047 positions instead of 2048": lambda row, order: row[-1:].fill_(-1),
}


def assert_selection(decoded: reference.Decoded, change: Change) -> None:
    selection = decoded.selection()
    change(selection[0, 0, 0], decoded.scores[0].argsort(descending=True))
    attention_comparison.assert_selection(
        selection, decoded, attention_comparison.SCORE_TOLERANCE[torch.bfloat16]
    )


def test_accepts_another_choice_among_nearly_equal_scores(decoded: reference.Decoded) -> None:
    assert_selection(decoded, lambda row, order: row[-1:].fill_(order[TOP_K]))


@pytest.mark.parametrize("message", REJECTED)
def test_rejects_a_selection(decoded: reference.Decoded, message: str) -> None:
    with pytest.raises(AssertionError, match=f"row 0: {message}"):
        assert_selection(decoded, REJECTED[message])


def test_rejects_an_output_of_another_selection() -> None:
    """The output must be attention over the op's own selection, not over any good one."""
    arguments = samples.fused_arguments(SIZES)
    sample = SampleInput((), {name: each.clone() for name, each in arguments.items()})
    decoded = reference.decode(arguments)
    expected = reference.attend(decoded, arguments, decoded.selection())
    half = decoded.selection()
    half[..., 1024:] = -1
    wrong = reference.attend(decoded, arguments, half)
    attention_comparison.compare_fused(expected, expected, sample)
    with pytest.raises(AssertionError, match=r"output: .* elements are wrong"):
        attention_comparison.compare_fused(wrong, expected, sample)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_tolerance_is_on_999_of_1000_elements(dtype: torch.dtype) -> None:
    expected = torch.ones(2000, dtype=dtype)
    actual = expected.clone()
    actual[:2] += 0.035 if dtype == torch.bfloat16 else 0.02 if dtype == torch.float16 else 2e-3
    if dtype == torch.bfloat16:
        attention_comparison.assert_close(actual, expected)
    actual[:3] = 1.1
    with pytest.raises(AssertionError, match=r"3 of 2000 elements .* and 2 wrong elements"):
        attention_comparison.assert_close(actual, expected)


def test_tolerance_is_on_the_whole_too() -> None:
    expected = torch.ones(2000, dtype=torch.bfloat16)
    with pytest.raises(AssertionError, match=r"a cosine difference of 1.2e-05"):
        attention_comparison.assert_close(expected * 1.0079, expected)


def test_infinities_must_be_where_they_are_expected() -> None:
    expected = torch.tensor([1.0, -torch.inf])
    attention_comparison.assert_close(expected, expected.clone())
    with pytest.raises(AssertionError, match="-inf at the same positions"):
        attention_comparison.assert_close(expected.flip(0), expected)
