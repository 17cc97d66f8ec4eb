"""add_custom at every instruction set: torch's own sums."""

from __future__ import annotations

import custom_pypto.core
import pytest
import torch
from emulator import tensor_of
from torch import Tensor

from conftest import Kernels

ADD = 1
# In the order of the driver.
DTYPES = tuple(
    getattr(torch, each)
    for each in custom_pypto.core.contract("add_custom").tensors[0].dtype.allowed
)
SIZES = (0, 1, 3, 4, 5, 7, 8, 9, 31, 1000)


def add(kernels: Kernels, one: Tensor, other: Tensor) -> Tensor:
    """Add two tensors [n]."""
    arguments = [DTYPES.index(one.dtype), len(one), one.clone(), other.clone()]
    (answer,) = kernels("add_custom").call(ADD, arguments, answers=1)
    return tensor_of(answer, one.dtype, len(one))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_adds_as_torch_does(kernels: Kernels, dtype: torch.dtype, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    wide = torch.randn(2, size, generator=generator, dtype=torch.float64) * 1000
    one, other = wide.to(dtype)
    assert add(kernels, one, other).equal(one + other)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_integers_wrap(kernels: Kernels, dtype: torch.dtype) -> None:
    extremes = torch.tensor([torch.iinfo(dtype).max, torch.iinfo(dtype).min, -1, 0, 1], dtype=dtype)
    one, other = torch.cartesian_prod(extremes, extremes).T
    assert add(kernels, one, other).equal(one + other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("addend", [0.0, 1.0, 6e-8, -0.333, 65504.0, torch.inf, torch.nan])
def test_every_16_bit_number(kernels: Kernels, dtype: torch.dtype, addend: float) -> None:
    one = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    other = torch.full_like(one, addend)
    actual, expected = add(kernels, one, other), one + other
    assert actual.isnan().equal(expected.isnan())
    assert actual.nan_to_num(7).equal(expected.nan_to_num(7))
