"""The products of the prologs at every instruction set; the int32 sums of int8 are exact."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import custom_pypto_blocks
import pytest
import torch
from cpp_constant import cpp_constant, cpp_constants
from custom_pypto_sparse_attention import comparison, reference, to_nz
from torch import Tensor

from conftest import Op

CPU = Path(custom_pypto_blocks.__file__).parent / "include" / "custom_pypto_blocks" / "cpu"
FEW_ROWS = cpp_constant(CPU, "kFewInt8Rows")
MORE_ROWS = cpp_constants(CPU, "kMoreRows")[2]
DEEPEST_STEP = 8  # numbers along K, of a matrix product
FEW, MORE, MANY = (
    DEEPEST_STEP * cpp_constants(CPU, rows)[1] for rows in ("kFewRows", "kMoreRows", "kManyRows")
)
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
INT8_SHAPES = [
    (1, 1, 1),
    (1, 2, 16),
    (5, 72, 70),
    (FEW_ROWS, 131, 17),
    (2, 301, 300),
    # More than a block of steps.
    (1, FEW + 3, 33),
    (3, FEW + 37, 21),
    (FEW_ROWS + 1, MORE + 2, 40),
    (MORE_ROWS + 12, MANY + 5, 33),
]
"""[T, K] times [K, N]."""


def operands(shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    rows, depth, columns = shape
    generator = torch.Generator().manual_seed(sum(shape))
    if dtype == torch.int8:
        x = torch.randint(-128, 128, (rows, depth), generator=generator, dtype=dtype)
        return x, torch.randint(-128, 128, (depth, columns), generator=generator, dtype=dtype)
    x = torch.randn(rows, depth, generator=generator).to(dtype)
    weight = torch.randn(depth, columns, generator=generator) * depth**-0.5
    return x, weight.to(dtype)


def check(product: Op, x: Tensor, weight: Tensor) -> None:
    if x.dtype == torch.int8:
        assert product(x, weight).equal(x.int() @ weight.int())
        return
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


@pytest.mark.parametrize("shape", INT8_SHAPES, ids=str)
def test_plain_int8_weights(int8_product: Op, shape: tuple[int, int, int]) -> None:
    check(int8_product, *operands(shape, torch.int8))


@pytest.mark.parametrize("rows", [5, FEW_ROWS + 1])
def test_int8_weights_with_any_strides(int8_product: Op, rows: int) -> None:
    x, weight = operands((rows, 35, 45), torch.int8)
    check(int8_product, x, weight.T.contiguous().T)
    check(int8_product, x[:, :17], weight[1::2, 1::3])
    check(int8_product, x[:, 1:], weight[1:])
    check(int8_product, x[1::2], weight)


@pytest.mark.parametrize(("left", "right"), [(-128, -128), (-128, 127), (127, -128), (127, 127)])
def test_the_largest_int8_sums_are_exact(int8_product: Op, left: int, right: int) -> None:
    """The depth is a model's. Instructions that saturate would be noticed."""
    x = torch.full((3, 1536), left, dtype=torch.int8)
    check(int8_product, x, torch.full((1536, 20), right, dtype=torch.int8))


def test_no_int8_depth_gives_zeros(int8_product: Op) -> None:
    x, weight = torch.ones(2, 0, dtype=torch.int8), torch.ones(0, 20, dtype=torch.int8)
    assert int8_product(x, weight).equal(torch.zeros(2, 20, dtype=torch.int32))


def test_int8_columns_may_be_split_anywhere(int8_product: Op) -> None:
    check(partial(int8_product, panels=1), *operands((20, 150, 200), torch.int8))
