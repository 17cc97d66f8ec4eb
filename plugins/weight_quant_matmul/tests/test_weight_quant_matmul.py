"""npu_weight_quant_batchmatmul: rows, sizes and groups that reach each kernel; packing int4."""

import custom_pypto  # noqa: F401
import pytest
import torch
from custom_pypto_testing import assert_close
from custom_pypto_testing.timing.interleaved import torch_threads
from custom_pypto_weight_quant_matmul import pack_int4, unpack_awq, unpack_int4, unpack_unsigned
from torch import Tensor

multiply = torch.ops.custom_pypto.npu_weight_quant_batchmatmul


def integers(bits: int, *shape: int) -> Tensor:
    most = 2 ** (bits - 1)
    return torch.randint(-most, most, shape, generator=torch.Generator().manual_seed(bits))


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 13, 40])
@pytest.mark.parametrize(("depth", "group"), [(8, 0), (40, 32), (1064, 0), (1064, 96), (28672, 0)])
def test_any_rows_and_groups_give_the_product(depth: int, group: int, rows: int, bits: int) -> None:
    random = torch.Generator().manual_seed(rows)
    # Tiles of three columns leave two, tiles of two leave one.
    columns, groups = 37 + rows % 2, -(-depth // (group or depth))
    numbers = integers(bits, columns, depth)
    # No sum is of numbers that cancel.
    x = torch.rand(rows, depth, generator=random, device="cpu").bfloat16()
    scale = torch.rand(groups, columns, generator=random, device="cpu").bfloat16()
    small, limit = integers(4, groups, columns) + 8, 16 if bits == 4 else 128
    offset = (small if bits == 4 else 128 - small).bfloat16()
    if depth == 40:  # tiles do not take it
        offset[-1, -1] = (limit - 0.5, limit + 1, 0.5, -limit - 1)[rows % 4]
    weight = (numbers.to(torch.int8) if bits == 8 else pack_int4(numbers)).t()
    of_number = torch.arange(depth) // (group or depth)
    exact = (numbers.t() + offset.double()[of_number]) * scale.double()[of_number]
    results = []
    for threads in (1, 2):
        with torch_threads(threads):
            results.append(multiply(x, weight, scale, offset, antiquant_group_size=group))
    assert_close(results[0], (x.double() @ exact).bfloat16())
    # Fewer rows are multiplied without tiles.
    last = multiply(x[-min(rows, 4) :], weight, scale, offset, antiquant_group_size=group)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0][-len(last) :], last)


def test_a_weight_that_is_not_transposed_gives_the_same() -> None:
    x, numbers = torch.randn(3, 64, device="cpu").half(), integers(8, 64, 9).to(torch.int8)
    scale = torch.full((1,), 0.25, device="cpu", dtype=torch.float16)
    expected = multiply(x, numbers.t().contiguous().t(), scale)
    assert torch.equal(multiply(x, numbers, scale), expected)
    assert_close(expected, (x.double() @ numbers.double() / 4).half())


def test_int4_is_packed_and_unpacked() -> None:
    numbers = integers(4, 3, 5, 16)
    for each in (numbers, numbers[..., :0], (numbers & 7).byte(), integers(4, 16, 3).t()):
        assert torch.equal(unpack_int4(pack_int4(each)), each.to(torch.int8))
    assert pack_int4(torch.arange(-8, 0)).item() == -0x01234568
    with pytest.raises(ValueError, match="multiple of 8"):
        pack_int4(numbers[..., :4])
    with pytest.raises(ValueError, match="from -8 to 7"):
        pack_int4(numbers + 1)
    octets = torch.arange(256, device="cpu").to(torch.uint8)
    assert unpack_unsigned(octets.view(torch.int32), 8).equal((octets.int() - 128).to(torch.int8))
    assert unpack_unsigned(octets.view(torch.int32), 4)[::2].equal((octets % 16).char() - 8)
    assert unpack_awq(torch.tensor([0x75316420]).int()).tolist() == [*range(-8, 0)]
