"""linear: rows and sizes that reach each kernel, extreme numbers, and what torch's modes change."""

import custom_pypto  # noqa: F401
import pytest
import torch
from custom_pypto_testing import assert_close
from custom_pypto_testing.timing.interleaved import torch_threads
from torch import Tensor
from torch.nn.functional import linear as by_torch

linear = torch.ops.custom_pypto.linear

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
# Tiles with a rest, as one tile, and more rows than a block has.
ROWS = (1, 2, 3, 4, 5, 6, 7, 12, 13, 16, 24, 31, 100)


def call(rows: int, depth: int, columns: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(rows)
    shapes = ((rows, depth), (columns, depth), (columns,))
    given, weight, bias = (torch.randn(each, generator=random, device="cpu") for each in shapes)
    return given.to(dtype), (weight / depth**0.5).to(dtype), bias.to(dtype)


def exact(*arguments: Tensor) -> Tensor:
    return by_torch(*(each.double() for each in arguments)).to(arguments[0].dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (37, 5), (1100, 66)])
def test_any_rows_give_the_product(rows: int, depth: int, columns: int, dtype: torch.dtype) -> None:
    arguments = call(rows, depth, columns, dtype)
    expected = exact(*arguments)
    for threads in (1, 2):
        with torch_threads(threads):
            assert_close(linear(*arguments), expected)
    assert_close(linear(*arguments[:2]), exact(*arguments[:2]))


def test_more_rows_than_a_cache_holds_give_the_product() -> None:
    arguments = call(300, 8200, 40, torch.float16)
    assert_close(linear(*arguments), exact(*arguments))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("rows", [1, 40])
def test_infinities_and_nan_stay_in_their_row_and_column(
    rows: int, number: float, dtype: torch.dtype
) -> None:
    given, weight, bias = call(rows, 70, 9, dtype)
    given[rows - 1, 69], weight[7, 69] = number, number
    assert_close(linear(given, weight, bias), exact(given, weight, bias))


@pytest.mark.parametrize("rows", [3, 30])
def test_the_bias_is_added_before_the_result_is_rounded(rows: int) -> None:
    given = torch.full((rows, 2), 256.0, device="cpu", dtype=torch.bfloat16)
    weight = torch.tensor([[1.0, 2.0**-8]], dtype=torch.bfloat16)  # 257, which bf16 has not
    result = linear(given, weight, torch.tensor([1.0], dtype=torch.bfloat16))
    assert result.tolist() == [[258.0]] * rows


@pytest.mark.parametrize("rows", [2, 64])
def test_autocast_inference_mode_and_gradients_leave_the_result(rows: int) -> None:
    given, weight, bias = call(rows, 64, 33, torch.float32)
    expected = linear(given, weight, bias)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(given, weight, bias), expected)
    with torch.inference_mode():
        assert torch.equal(linear(given, weight, bias), expected)
    assert torch.equal(linear(given, weight.requires_grad_(), bias), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [2, 50])
def test_gradients_are_those_of_torch(rows: int, dtype: torch.dtype) -> None:
    arguments = call(rows, 40, 30, dtype)
    ours, theirs = ([each.clone().requires_grad_() for each in arguments] for _ in range(2))
    factor = torch.randn(rows, 30, generator=torch.Generator().manual_seed(0)).to(dtype)
    (linear(*ours) * factor).sum().backward()
    (by_torch(*theirs) * factor).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine.grad, other.grad)


def test_gradients_of_a_batch() -> None:
    x, weight, _ = call(2, 40, 30, torch.float64)
    found = torch.autograd.functional.jacobian(lambda x: linear(x, weight), x, vectorize=True)
    assert torch.equal(found[1, :, 1], weight)
