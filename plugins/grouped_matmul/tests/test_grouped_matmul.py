"""npu_grouped_matmul: rows of groups that reach each kernel, layouts of weights, wrong calls."""

from collections.abc import Sequence

import pytest
import torch
from custom_pypto import core
from custom_pypto_grouped_matmul import reference
from custom_pypto_testing import assert_close
from custom_pypto_testing.timing.interleaved import torch_threads
from torch import Tensor

grouped_matmul = torch.ops.custom_pypto.npu_grouped_matmul

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
ROWS = ((1, 0, 2, 3), (4, 5, 6, 7), (0, 0, 70, 0), (12, 0, 13, 100), (1, 0, 0, 17))


def call(
    rows: Sequence[int], depth: int, columns: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(sum(rows))
    shapes = ((sum(rows), depth), (len(rows), columns, depth), (len(rows), columns))
    x, weight, bias = (torch.randn(each, generator=random, device="cpu") for each in shapes)
    return x.to(dtype), (weight / depth**0.5).to(dtype).transpose(1, 2), bias


def grouped(x: Tensor, weight: Tensor, rows: Sequence[int], **options: object) -> Tensor:
    groups = torch.tensor(rows, device="cpu")
    options |= {"split_item": 3, "group_type": 0, "group_list_type": 1, "group_list": groups}
    (result,) = grouped_matmul([x], [weight], **options)
    assert_close([result], reference([x], [weight], **options))
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (37, 5), (1100, 66)])
def test_any_groups_give_the_products(
    rows: tuple[int, ...], depth: int, columns: int, dtype: torch.dtype
) -> None:
    x, weight, bias = call(rows, depth, columns, dtype)
    for each in (weight, weight.contiguous(), weight[:, ::2], weight[..., ::2]):
        own = x[:, ::2] if each.shape[1] != depth else x
        one = grouped(own, each, rows)
        with torch_threads(2):
            assert torch.equal(grouped(own, each, rows), one)
    grouped(x, weight, rows, bias=[bias.half() if dtype == torch.float16 else bias])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_group_has_the_same_bits_beside_any_other(dtype: torch.dtype) -> None:
    x, weight, _ = call((2, 3, 40), 300, 77, dtype)
    alone = grouped(x[:2].clone(), weight[:1], [2])
    assert torch.equal(grouped(x, weight, [2, 3, 40])[:2], alone)
    assert torch.equal(grouped(x, weight, [2, 1, 0])[:2], alone)


def test_samples_give_what_the_reference_gives() -> None:
    for each in core.samples("npu_grouped_matmul", "cpu"):
        result = grouped_matmul(*each.args, **each.kwargs)
        assert_close(result, reference(*each.args, **each.kwargs))


def test_rows_of_no_group_are_zeros() -> None:
    x, weight, _ = call((2, 3), 16, 8, torch.float32)
    assert not grouped(x, weight, [1, 2])[3:].any()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"group_list": [3, 2]}, r"'group_list' must have values of 3 to 5 at \[1\], got 2"),
        ({"group_list": [3, 6]}, r"'group_list' must have values of 3 to 5 at \[1\], got 6"),
        ({"group_list": [5]}, "'group_list' must have 2 values, as many as weights, got 1"),
        ({"group_list": None}, "'group_list' is required where x is one tensor"),
        ({"group_type": 2}, "'group_type' must be -1 or 0, got 2"),
        ({"group_type": -1, "group_list": None, "split_item": 0}, r"'weight\[0\]' must be 2-D"),
        ({"split_item": 1}, "'split_item' must be 2 or 3 with group_type 0, got 1"),
        ({"act_type": 5}, "'act_type' must be 0, got 5"),
        ({"output_dtype": torch.float16}, "'output_dtype' must be None or the dtype of x, float32"),
        *(
            ({name: [torch.ones(2, device="cpu")]}, f"'{name}' must be None")
            for name in ("scale", "per_token_scale", "antiquant_scale", "activation_input")
        ),
    ],
)
def test_wrong_calls_are_refused(wrong: dict[str, object], error: str) -> None:
    x, weight, _ = call((2, 3), 16, 8, torch.float32)
    options = {"split_item": 2, "group_type": 0, "group_list": [2, 5]} | wrong
    if options["group_list"] is not None:
        options["group_list"] = torch.tensor(options["group_list"], device="cpu")
    with pytest.raises(RuntimeError, match=rf"npu_grouped_matmul: argument {error}"):
        grouped_matmul([x], [weight], **options)
