"""npu_grouped_matmul: rows of groups that reach each kernel, weights of each layout, wrong groups."""

from collections.abc import Sequence

import custom_pypto  # noqa: F401
import pytest
import torch
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


def test_rows_of_no_group_are_zeros() -> None:
    x, weight, _ = call((2, 3), 16, 8, torch.float32)
    assert not grouped(x, weight, [1, 2])[3:].any()


@pytest.mark.parametrize(
    ("groups", "kind", "error"),
    [
        ([3, 2], 0, r"must have values of 3 to 5 at \[1\], got 2"),
        ([3, 6], 0, r"must have values of 3 to 5 at \[1\], got 6"),
        ([3, 3], 1, r"must have values of 0 to 2 at \[1\], got 3"),
        ([-1, 3], 1, r"must have values of 0 to 5 at \[0\], got -1"),
        ([5], 0, "must have 2 values, as many as weights, got 1"),
    ],
)
def test_wrong_groups_are_refused(groups: list[int], kind: int, error: str) -> None:
    x, weight, _ = call((2, 3), 16, 8, torch.float32)
    options = {"split_item": 2, "group_type": 0, "group_list": torch.tensor(groups, device="cpu")}
    with pytest.raises(RuntimeError, match=rf"npu_grouped_matmul: argument 'group_list' {error}"):
        grouped_matmul([x], [weight], **options, group_list_type=kind)
