"""Int8 products and quantisation: rows and sizes that reach each kernel, and extreme numbers."""

import custom_pypto.core
import pytest
import torch
from custom_pypto_testing.timing.interleaved import torch_threads
from torch import Tensor

exact = custom_pypto.core.reference("npu_quant_matmul").function
product = torch.ops.custom_pypto.npu_quant_matmul
quantise = torch.ops.custom_pypto.npu_dynamic_quant

# Tiles with a rest, as one tile, and more than torch multiplies faster.
ROWS = (1, 2, 3, 4, 5, 6, 7, 12, 13, 31, 110)


def call(rows: int, depth: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(rows)
    x1, weight = (
        torch.randint(-128, 128, (each, depth), generator=random, device="cpu", dtype=torch.int8)
        for each in (rows, columns)
    )
    return x1, weight, torch.rand(columns, generator=random, device="cpu") / depth


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (37, 5), (1100, 66)])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.float16, torch.bfloat16], ids=str)
def test_any_rows_give_the_product(rows: int, depth: int, columns: int, dtype: torch.dtype) -> None:
    x1, weight, scale = call(rows, depth, columns)
    number = {torch.int8: 1, torch.int32: 3, torch.float16: 5, torch.bfloat16: 15}[dtype]
    expected = exact(x1, weight.t(), scale, output_dtype=number)
    for threads in (1, 2):
        with torch_threads(threads):
            assert torch.equal(product(x1, weight.t(), scale, output_dtype=dtype), expected)
    assert torch.equal(product(x1, weight.t().contiguous(), scale, output_dtype=dtype), expected)


@pytest.mark.parametrize("rows", [1, 9, 110])
@pytest.mark.parametrize(("first", "second"), [(-128, -128), (127, -128), (-128, 127), (127, 127)])
def test_sums_of_the_greatest_depth_are_exact(rows: int, first: int, second: int) -> None:
    x1, x2 = torch.full((rows, 131071), first), torch.full((131071, 3), second)
    scale = torch.ones(1, device="cpu")
    result = product(x1.to(torch.int8), x2.to(torch.int8), scale, output_dtype=torch.int32)
    assert result.unique().tolist() == [first * second * 131071]


def test_a_bias_of_integers_is_scaled_and_one_of_floats_is_not() -> None:
    x1, x2 = torch.tensor([[3]], dtype=torch.int8), torch.tensor([[5]], dtype=torch.int8)
    scale, rows = torch.tensor([2.0]), torch.tensor([10.0])
    for bias, expected in ((torch.tensor([1], dtype=torch.int32), 320), (torch.tensor([1.0]), 301)):
        options = {"pertoken_scale": rows, "bias": bias, "output_dtype": torch.float16}
        assert product(x1, x2, scale, **options).item() == expected


def test_a_bias_of_integers_wraps_as_torch_does() -> None:
    x1, weight, scale = call(3, 37, 5)
    bias = torch.full((5,), -(2**31), dtype=torch.int32, device="cpu")
    options = {"bias": bias, "output_dtype": 5}
    expected = exact(x1, weight.t(), scale, **options)
    assert torch.equal(product(x1, weight.t(), scale, **options), expected)


@pytest.mark.parametrize("columns", [1, 5, 64, 67])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_rows_of_zeros_infinities_and_nan_have_a_scale(columns: int, dtype: torch.dtype) -> None:
    rows = torch.ones(4, columns, device="cpu", dtype=dtype)
    nan = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32).item()
    rows[:, -1] = torch.tensor([-3.0, 0.0, float("inf"), nan])
    rows[1] = 0
    y, scale = quantise(rows)
    torch.testing.assert_close(
        scale * 127, torch.tensor([3, 0, *rows[2:, -1].tolist()]), equal_nan=True
    )
    assert y[0].tolist() == [42] * (columns - 1) + [-127]
    assert not y[1:].any()
