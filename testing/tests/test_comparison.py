"""The default comparison with the reference."""

import math
from itertools import permutations

import pytest
import torch
from custom_pypto_testing import assert_close
from custom_pypto_testing.comparison import Tolerance, assert_same_bits

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


ZERO, ONE = torch.zeros(1), torch.ones(1)
LARGE = torch.tensor([0, 2**62])
COMPLEX = torch.tensor([1 + 2j, 3 + 4j])
SMALL = values(torch.float32) * 1e-6
DIFFERENCES = {
    "the worst of several wrong elements is shown": (
        torch.tensor([0.0, 1.0, 2.0]),
        torch.zeros(3),
        r"2 of 3 .* at \[2\], is 2\.0 instead of 0\.0",
    ),
    "small values that are all wrong are found by cosine": (
        torch.zeros_like(SMALL),
        SMALL,
        r"cosine difference of 1e-09 .* not 1",
    ),
    "integers that float64 cannot distinguish are unequal": (
        LARGE + torch.tensor([0, 1]),
        LARGE,
        r"at \[1\], is 4611686018427387905 instead of 46",
    ),
    "complex tensors are compared by parts": (
        COMPLEX + torch.tensor([0, 1j]),
        COMPLEX,
        r"at \[1, 1\], is 5\.0 instead of 4\.0",
    ),
    "shape": (torch.zeros(3), torch.zeros(2), "output: shape is .*, expected "),
    "dtype": (torch.zeros(2).half(), torch.zeros(2), "output: dtype is .*, expected "),
    "one of two outputs": ((ZERO, ZERO), (ZERO, ONE), "output 1: 1 of 1 elements are wrong"),
    "one of a list": ([ZERO, ZERO], [ZERO, ONE], r"output\[1\]: 1 of 1 elements are wrong"),
    "missing output": (ZERO, (ZERO, ZERO), r"expected output 0, output 1 but .* returned output"),
    "numbers": ((3, 0.1), (4, 0.1), "output 0: 3, expected 4"),
    **{
        f"{dtype} is exact": (
            torch.tensor([0, 1, 1]).to(dtype),
            torch.tensor([0, 1, 0]).to(dtype),
            r"1 of 3 elements .* at \[2\].*exact equality",
        )
        for dtype in (torch.int8, torch.int32, torch.int64, torch.bool)
    },
}


@pytest.mark.parametrize(("actual", "expected", "message"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_difference_is_found(actual: object, expected: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


EQUALS = {
    "special values at the same positions": (
        torch.tensor([math.nan, math.inf, -math.inf, 1.0]),
        torch.tensor([math.nan, math.inf, -math.inf, 1.0]),
    ),
    "empty": (torch.zeros(0, 3), torch.zeros(0, 3)),
    "zeros": (torch.zeros(3), -torch.zeros(3)),
    "numbers": ((3, 0.1), (3, 0.1 + 1e-12)),
}


@pytest.mark.parametrize(("actual", "expected"), EQUALS.values(), ids=EQUALS)
def test_equal_values_pass(actual: object, expected: object) -> None:
    assert_close(actual, expected)


@pytest.mark.parametrize(
    ("value", "what"), [(math.nan, "NaN"), (math.inf, r"\+inf"), (-math.inf, "-inf")]
)
def test_special_value_in_one_only_is_found_first(value: float, what: str) -> None:
    actual = torch.zeros(4)
    actual[3] = value
    found = rf"at \[3\].*allowed: {what} at the same positions"
    for one, other in permutations((actual, torch.zeros(4))):
        with pytest.raises(AssertionError, match=found):
            assert_close(one, other)


def test_bits_that_differ_are_shown_where() -> None:
    actual, expected = torch.zeros(2, 2), torch.zeros(2, 2)
    actual[1, 0] = -0.0
    with pytest.raises(AssertionError, match=r"x: 1 of 4 .* at \[1, 0\]: -0\.0 instead of 0\.0"):
        assert_same_bits("x", actual, expected, "with two threads")


@pytest.mark.parametrize("x", [torch.tensor([math.nan]), torch.ones(1, 3).half()[:, ::3]])
def test_equal_elements_have_the_same_bits(x: torch.Tensor) -> None:
    """NaN, and a single element of another stride."""
    assert_same_bits("x", x, x.clone(memory_format=torch.contiguous_format), "with two threads")


def test_outliers_are_a_part_of_the_elements() -> None:
    most = Tolerance(1e-5, 1e-5, 1e-9, outliers=1e-3).most_outliers
    assert list(map(most, (10, 5000))) == [1, 5]
