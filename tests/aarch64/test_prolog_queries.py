"""The prolog's queries at every instruction set: the same bits as by torch, step by step."""

from __future__ import annotations

import pytest
import torch
from emulator import tensor_of
from torch import Tensor

from conftest import Kernels

DRIVER = "lightning_indexer_prolog"
ROTATE = 2
QUANTISE = 3

SIZES = [(2, 2), (16, 8), (34, 6), (37, 36), (128, 64)]
"""The size of a head, and the number of its rotated dims."""


def rotate(
    kernels: Kernels, sums: Tensor, token_scale: float, scales: Tensor, sin: Tensor, cos: Tensor
) -> Tensor:
    """Rotate one token's heads: sums int32 and scales [heads, D], sin and cos [R], to bf16."""
    tensors = [x.clone() for x in (sums, scales, sin, cos)]
    arguments = [sums.shape[-1], len(sin), token_scale, *tensors]
    (answer,) = kernels(DRIVER).call(ROTATE, arguments, answers=1)
    return tensor_of(answer, torch.bfloat16, *sums.shape)


def quantise(kernels: Kernels, x: Tensor) -> tuple[Tensor, Tensor]:
    """Round fp32 [rows, D] to bf16; return it as int8, and the fp16 scales [rows, 1]."""
    numbers, scales = kernels(DRIVER).call(QUANTISE, [x.shape[-1], x.clone()], answers=2)
    return tensor_of(numbers, torch.int8, *x.shape), tensor_of(scales, torch.float16, len(x), 1)


@pytest.mark.parametrize(("size", "rotated"), SIZES)
def test_rotates_as_torch_does(int8_kernels: Kernels, size: int, rotated: int) -> None:
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
    assert rotate(int8_kernels, sums, token_scale, scales, sin, cos).equal(expected)


def check_quantised(int8_kernels: Kernels, x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise rows of finite numbers that are not all 0, and compare with torch."""
    numbers, scales = quantise(int8_kernels, x)
    rounded = x.bfloat16().float()
    largest = rounded.abs().amax(-1, keepdim=True)
    # torch computes a number over a tensor as the number times the rounded reciprocal.
    factors = torch.full_like(largest, 127) / largest
    assert numbers.equal((rounded * factors).round().to(torch.int8))
    assert scales.equal(factors.reciprocal().half())
    return numbers, scales


@pytest.mark.parametrize("size", [1, 7, 16, 33, 128])
@pytest.mark.parametrize("magnitude", [1e-4, 1.0, 300.0])
def test_quantises_as_torch_does(int8_kernels: Kernels, size: int, magnitude: float) -> None:
    generator = torch.Generator().manual_seed(size)
    check_quantised(int8_kernels, torch.randn(20, size, generator=generator) * magnitude)


def test_halves_go_to_the_even_neighbour(int8_kernels: Kernels) -> None:
    numbers, _ = check_quantised(
        int8_kernels, torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]])
    )
    assert numbers.tolist() == [[127, 0, 2, 2, 0, -2, -2]]


def test_rows_of_zeros_have_scale_zero(int8_kernels: Kernels) -> None:
    numbers, scales = quantise(int8_kernels, torch.tensor([[0.0, -0.0, 0.0], [1.0, 0.0, -1.0]]))
    assert numbers.tolist() == [[0, 0, 0], [127, 0, -127]]
    assert scales[0] == 0


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_a_number_that_is_not_finite_shows_in_the_scale(
    int8_kernels: Kernels, value: float
) -> None:
    numbers, scales = quantise(int8_kernels, torch.tensor([[1.0, value, 3.0], [1.0, 2.0, 3.0]]))
    assert numbers[0].eq(0).all()
    assert not scales[0].isfinite()
    assert scales[1].isfinite()
