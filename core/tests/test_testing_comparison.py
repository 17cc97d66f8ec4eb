"""The default comparison with the reference."""

from __future__ import annotations

import math

import pytest
import torch
from custom_pypto_testing import assert_close
from custom_pypto_testing.comparison import assert_same_bits

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def values(dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 5, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_in_the_last_place_passes(dtype: torch.dtype) -> None:
    expected = values(dtype)
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    assert_close((expected.view(integers) + 1).view(dtype), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_wrong_element_is_shown_with_position_and_values(dtype: torch.dtype) -> None:
    expected = values(dtype)
    expected[2, 3] = 1.0
    actual = expected.clone()
    actual[2, 3] = 1.5
    with pytest.raises(
        AssertionError,
        match=r"output: 1 of 20 elements are wrong; the worst, at \[2, 3\], is 1\.5 instead of"
        r" 1\.0, off by 0\.5; allowed: atol",
    ):
        assert_close(actual, expected)


def test_the_worst_of_several_wrong_elements_is_shown() -> None:
    actual = torch.zeros(3)
    actual[1], actual[2] = 1.0, 2.0
    with pytest.raises(AssertionError, match=r"2 of 3 .* at \[2\], is 2\.0 instead of 0\.0"):
        assert_close(actual, torch.zeros(3))


@pytest.mark.parametrize(
    ("value", "what"), [(math.nan, "NaN"), (math.inf, r"\+inf"), (-math.inf, "-inf")]
)
def test_special_value_in_one_only_is_found_first(value: float, what: str) -> None:
    actual = torch.zeros(4)
    actual[3] = value
    with pytest.raises(AssertionError, match=rf"at \[3\].*allowed: {what} at the same positions"):
        assert_close(actual, torch.zeros(4))
    with pytest.raises(AssertionError, match=rf"at \[3\].*allowed: {what} at the same positions"):
        assert_close(torch.zeros(4), actual)


def test_special_values_at_the_same_positions_pass() -> None:
    special = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert_close(special, special.clone())


def test_small_values_that_are_all_wrong_are_found_by_cosine() -> None:
    expected = values(torch.float32) * 1e-6
    with pytest.raises(AssertionError, match=r"cosine difference of 1e-09 .* not 1"):
        assert_close(torch.zeros_like(expected), expected)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.bool])
def test_integers_and_booleans_are_exact(dtype: torch.dtype) -> None:
    expected = torch.tensor([0, 1, 0]).to(dtype)
    with pytest.raises(AssertionError, match=r"1 of 3 elements .* at \[2\].*exact equality"):
        assert_close(torch.tensor([0, 1, 1]).to(dtype), expected)


def test_integers_that_float64_cannot_distinguish_are_unequal() -> None:
    expected = torch.tensor([0, 2**62])
    with pytest.raises(AssertionError, match=r"at \[1\], is 4611686018427387905 instead of 46"):
        assert_close(expected + torch.tensor([0, 1]), expected)


def test_complex_tensors_are_compared_by_parts() -> None:
    expected = torch.tensor([1 + 2j, 3 + 4j])
    with pytest.raises(AssertionError, match=r"at \[1, 1\], is 5\.0 instead of 4\.0"):
        assert_close(expected + torch.tensor([0, 1j]), expected)


@pytest.mark.parametrize("what", ["shape", "dtype"])
def test_other_shape_or_dtype_is_found(what: str) -> None:
    other = torch.zeros(3) if what == "shape" else torch.zeros(2).half()
    with pytest.raises(AssertionError, match=f"output: {what} is .*, expected "):
        assert_close(other, torch.zeros(2))


def test_empty_tensors_are_equal() -> None:
    assert_close(torch.zeros(0, 3), torch.zeros(0, 3))


def test_zeros_are_equal() -> None:
    assert_close(torch.zeros(3), -torch.zeros(3))


def test_outputs_are_named_by_their_place() -> None:
    with pytest.raises(AssertionError, match="output 1: 1 of 1 elements are wrong"):
        assert_close((torch.zeros(1), torch.zeros(1)), (torch.zeros(1), torch.ones(1)))


def test_elements_of_a_list_are_named_by_their_place() -> None:
    with pytest.raises(AssertionError, match=r"output\[1\]: 1 of 1 elements are wrong"):
        assert_close([torch.zeros(1), torch.zeros(1)], [torch.zeros(1), torch.ones(1)])


def test_missing_output_is_found() -> None:
    with pytest.raises(AssertionError, match=r"expected output 0, output 1 but .* returned output"):
        assert_close(torch.zeros(1), (torch.zeros(1), torch.zeros(1)))


def test_numbers_are_compared() -> None:
    assert_close((3, 0.1), (3, 0.1 + 1e-12))
    with pytest.raises(AssertionError, match="output 0: 3, expected 4"):
        assert_close((3, 0.1), (4, 0.1))


def test_bits_that_differ_are_shown_where() -> None:
    actual, expected = torch.zeros(2, 2), torch.zeros(2, 2)
    actual[1, 0] = -0.0
    with pytest.raises(AssertionError, match=r"x: 1 of 4 .* at \[1, 0\]: -0\.0 instead of 0\.0"):
        assert_same_bits("x", actual, expected, "with two threads")


def test_equal_nans_have_the_same_bits() -> None:
    nan = torch.tensor([math.nan])
    assert_same_bits("x", nan, nan.clone(), "with two threads")
