"""The products of the prologs at every instruction set."""

from __future__ import annotations

import pytest
import torch
from conftest import Op
from custom_pypto_sparse_attention import comparison, reference, to_nz
from torch import Tensor

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SHAPES = [
    (1, 1, 1),
    (1, 2, 16),
    (3, 37, 21),
    (5, 64, 70),
    (17, 33, 40),
    (2, 300, 300),
    (200, 130, 33),
]
"""[T, K] times [K, N]."""


def operands(shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    rows, depth, columns = shape
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randn(rows, depth, generator=generator).to(dtype)
    weight = torch.randn(depth, columns, generator=generator) * depth**-0.5
    return x, weight.to(dtype)


def check(product: Op, x: Tensor, weight: Tensor) -> None:
    expected = reference.project(x, weight)
    comparison.assert_close(product(x, weight), expected.to(x.dtype))
    comparison.assert_close(product(x, weight, to_fp32=True), expected.float())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_plain_weights(product: Op, shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    check(product, *operands(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_weights_with_any_strides(product: Op, dtype: torch.dtype) -> None:
    x, weight = operands((5, 34, 45), dtype)
    check(product, x, weight.T.contiguous().T)
    check(product, x[:, :17], weight[::2, 1::3])
    check(product, x[1::2], weight)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
@pytest.mark.parametrize("depth", [1, 33, 64])
def test_weights_in_fractal_order(product: Op, depth: int, dtype: torch.dtype) -> None:
    x, weight = operands((3, depth, 80), dtype)
    check(product, x, to_nz(weight))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_small_integers_are_exact(product: Op, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-4, 5, (20, 75), generator=generator).to(dtype)
    weight = torch.randint(-4, 5, (75, 50), generator=generator).to(dtype)
    assert product(x, weight, to_fp32=True).equal(x.float() @ weight.float())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_infinity_and_nan_stay_in_their_row_and_column(product: Op, dtype: torch.dtype) -> None:
    x, weight = operands((4, 33, 40), dtype)
    x[1, 5], x[2, 7], weight[0, 3], weight[32, 9] = torch.inf, torch.nan, -torch.inf, torch.nan
    check(product, x, weight)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_depth_gives_zeros(product: Op, dtype: torch.dtype) -> None:
    x, weight = torch.ones(2, 0, dtype=dtype), torch.ones(0, 20, dtype=dtype)
    assert product(x, weight).equal(torch.zeros(2, 20, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_depend_neither_on_other_rows_nor_on_how_columns_are_split(
    product: Op, dtype: torch.dtype
) -> None:
    x, weight = operands((40, 150, 200), dtype)
    whole = product(x, weight)
    assert product(x, weight, panels=1).equal(whole)
    assert product(x[7:8], weight).equal(whole[7:8])
