"""The int8 products of prologs at every instruction set: their int32 sums are exact."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import custom_pypto.core
import pytest
import torch
from conftest import Op
from cpp_constant import cpp_constant, cpp_constants
from torch import Tensor

CPU = Path(custom_pypto.core.__file__).parent / "include" / "custom_pypto" / "cpu"
FEW_ROWS = cpp_constant(CPU, "kFewInt8Rows")
MORE_ROWS = cpp_constants(CPU, "kMoreRows")[2]
DEEPEST_STEP = 8  # numbers along K, of a matrix product
FEW, MORE, MANY = (
    DEEPEST_STEP * cpp_constants(CPU, rows)[1] for rows in ("kFewRows", "kMoreRows", "kManyRows")
)
SHAPES = [
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


def operands(shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    rows, depth, columns = shape
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randint(-128, 128, (rows, depth), generator=generator, dtype=torch.int8)
    weight = torch.randint(-128, 128, (depth, columns), generator=generator, dtype=torch.int8)
    return x, weight


def check(product: Op, x: Tensor, weight: Tensor) -> None:
    assert product(x, weight).equal(x.int() @ weight.int())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_plain_weights(int8_product: Op, shape: tuple[int, int, int]) -> None:
    check(int8_product, *operands(shape))


@pytest.mark.parametrize("rows", [5, FEW_ROWS + 1])
def test_any_strides(int8_product: Op, rows: int) -> None:
    x, weight = operands((rows, 35, 45))
    check(int8_product, x, weight.T.contiguous().T)
    check(int8_product, x[:, :17], weight[1::2, 1::3])
    check(int8_product, x[:, 1:], weight[1:])
    check(int8_product, x[1::2], weight)


@pytest.mark.parametrize(("left", "right"), [(-128, -128), (-128, 127), (127, -128), (127, 127)])
def test_the_largest_sums_are_exact(int8_product: Op, left: int, right: int) -> None:
    """The depth is a model's. Instructions that saturate would be noticed."""
    x = torch.full((3, 1536), left, dtype=torch.int8)
    check(int8_product, x, torch.full((1536, 20), right, dtype=torch.int8))


def test_no_depth_gives_zeros(int8_product: Op) -> None:
    x, weight = torch.ones(2, 0, dtype=torch.int8), torch.ones(0, 20, dtype=torch.int8)
    assert int8_product(x, weight).equal(torch.zeros(2, 20, dtype=torch.int32))


def test_columns_may_be_split_anywhere(int8_product: Op) -> None:
    check(partial(int8_product, panels=1), *operands((20, 150, 200)))
