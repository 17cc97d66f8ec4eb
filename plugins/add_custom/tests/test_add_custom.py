"""Behaviour of add_custom that the conformance suite does not test."""

import functools
import math
from collections.abc import Callable

import custom_pypto  # noqa: F401
import pytest
import torch
from custom_pypto_testing.timing.interleaved import torch_threads as use_threads
from torch import Tensor

add_custom = torch.ops.custom_pypto.add_custom

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int32, torch.int64]


def tensor(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:  # Sums of such numbers wrap.
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        return torch.randint(low, high, shape, generator=generator, dtype=dtype)
    return torch.randn(shape, generator=generator, dtype=torch.float64).mul(1000).to(dtype)


def assert_same_bits(actual: Tensor, expected: Tensor) -> None:
    """Every NaN equals every other."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    assert actual.is_floating_point() is False or actual.signbit()[~actual.isnan()].equal(
        expected.signbit()[~expected.isnan()]
    )


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_sum_is_that_of_torch_bit_for_bit(dtype: torch.dtype, threads: int) -> None:
    for size in (1, 7, 8, 63, 257, 32768, 32769, 100_003):
        one, other = tensor(size, dtype=dtype), tensor(size, dtype=dtype, seed=1)
        with use_threads(threads):
            assert_same_bits(add_custom(one, other), one + other)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2).contiguous().transpose(0, 2),
    "gaps": lambda x: torch.stack([x, x], -1)[..., 1],
    "padded_rows": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "expanded_first": lambda x: x[:1].expand_as(x),
    "expanded_middle": lambda x: x[:, :1].expand_as(x),
    "expanded_last": lambda x: x[..., :1].expand_as(x),
    "expanded_all": lambda x: x[0, 0, 0].expand_as(x),
    "overlapping_windows": lambda x: x.flatten().as_strided(x.shape, (1, 1, 1)),
}


@functools.cache
def laid_out(layout: str, dtype: torch.dtype, seed: int) -> Tensor:
    """Two threads share such a tensor."""
    return LAYOUTS[layout](tensor(3, 70, 160, dtype=dtype, seed=seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("self_layout", LAYOUTS)
def test_any_strides_give_a_contiguous_sum(self_layout: str, dtype: torch.dtype) -> None:
    one = laid_out(self_layout, dtype, 0)
    for other_layout in LAYOUTS:
        other = laid_out(other_layout, dtype, 1)
        expected = one + other
        for threads in (1, 2):
            with use_threads(threads):
                result = add_custom(one, other)
            assert result.equal(expected), other_layout
            assert result.is_contiguous(), other_layout


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_infinities_nan_and_the_largest_and_smallest_numbers(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    subnormal = limits.smallest_normal * limits.eps
    numbers = [limits.max, limits.tiny, limits.eps, 1.0, 0.0, subnormal, 3 * subnormal, math.inf]
    edges = torch.tensor([*numbers, *(-x for x in numbers), math.nan], dtype=dtype)
    one, other = (x.flatten() for x in torch.meshgrid(edges, edges, indexing="ij"))
    assert_same_bits(add_custom(one, other), one + other)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("addend", [0.0, -0.0, 1.0, 6e-8, 1e-40, -0.333, 65504.0, 3e38, -math.inf])
def test_every_16_bit_number_is_added_right(dtype: torch.dtype, addend: float) -> None:
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    other = torch.full((), addend).to(dtype).expand_as(every).contiguous()
    assert_same_bits(add_custom(every, other), every + other)
