"""The prolog's queries at every instruction set: the same bits as by torch, step by step."""

from __future__ import annotations

import pytest
import torch
from query_op import Query
from torch import Tensor

SIZES = [(2, 2), (16, 8), (34, 6), (37, 36), (128, 64)]
"""Of a head, and so many rotated dims of it."""


@pytest.mark.parametrize(("size", "rotated"), SIZES)
def test_rotates_as_torch_does(query: Query, size: int, rotated: int) -> None:
    generator = torch.Generator().manual_seed(size)
    sums = torch.randint(-(2**24), 2**24, (3, size), generator=generator, dtype=torch.int32)
    scales = torch.rand(3, size, generator=generator) * 1e-3
    angles = torch.rand(rotated, generator=generator) * 7
    sin, cos = angles.sin(), angles.cos()

    # Each product and sum is rounded to fp32 by itself.
    token_scale = 0.0078125
    values = (sums.float() * token_scale * scales).bfloat16()
    even, odd = values.float()[:, :rotated].unflatten(-1, (-1, 2)).unbind(-1)
    half = rotated // 2
    first = even * cos[:half] - odd * sin[:half]
    second = odd * cos[half:] + even * sin[half:]
    front = torch.cat((first, second), -1).bfloat16()
    expected = torch.cat((front, values[:, rotated:]), -1)
    assert query.rotate(sums, token_scale, scales, sin, cos).equal(expected)


def quantised(query: Query, x: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers and scales, after a check of rows that are finite and have no largest number 0."""
    numbers, scales = query.quantise(x)
    rounded = x.bfloat16().float()
    largest = rounded.abs().amax(-1, keepdim=True)
    # Of two tensors: a number over a tensor is the number times the rounded reciprocal.
    factors = torch.full_like(largest, 127) / largest
    assert numbers.equal((rounded * factors).round().to(torch.int8))
    assert scales.equal(factors.reciprocal().half())
    return numbers, scales


@pytest.mark.parametrize("size", [1, 7, 16, 33, 128])
@pytest.mark.parametrize("magnitude", [1e-4, 1.0, 300.0])
def test_quantises_as_torch_does(query: Query, size: int, magnitude: float) -> None:
    generator = torch.Generator().manual_seed(size)
    quantised(query, torch.randn(20, size, generator=generator) * magnitude)


def test_halves_go_to_the_even_neighbour(query: Query) -> None:
    numbers, _ = quantised(query, torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]]))
    assert numbers.tolist() == [[127, 0, 2, 2, 0, -2, -2]]


def test_rows_of_zeros_have_scale_zero(query: Query) -> None:
    numbers, scales = query.quantise(torch.tensor([[0.0, -0.0, 0.0], [1.0, 0.0, -1.0]]))
    assert numbers.tolist() == [[0, 0, 0], [127, 0, -127]]
    assert scales[0] == 0


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_a_number_that_is_not_finite_shows_in_the_scale(query: Query, value: float) -> None:
    numbers, scales = query.quantise(torch.tensor([[1.0, value, 3.0], [1.0, 2.0, 3.0]]))
    assert numbers[0].eq(0).all()
    assert not scales[0].isfinite()
    assert scales[1].isfinite()
