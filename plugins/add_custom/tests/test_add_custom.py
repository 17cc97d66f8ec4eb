"""What is particular to add_custom; the conformance suite tests what holds for every op."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import custom_pypto.core  # noqa: F401
import pytest
import torch
from torch import Tensor

add_custom = torch.ops.custom_pypto.add_custom

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int32, torch.int64]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def tensor(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).mul(1000).to(dtype)


def same_bits(actual: Tensor, expected: Tensor) -> bool:
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[expected.dtype.itemsize]
    return actual.dtype == expected.dtype and actual.view(integers).equal(expected.view(integers))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("size", [1, 7, 8, 63, 257, 32768, 32769, 100_003])
def test_sum_is_torchs_bit_for_bit(dtype: torch.dtype, size: int, threads: int) -> None:
    one, other = tensor(size, dtype=dtype), tensor(size, dtype=dtype, seed=1)
    assert same_bits(add_custom(one, other), one + other)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2).contiguous().transpose(0, 2),
    "permuted": lambda x: x.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "gaps": lambda x: torch.stack([x, x], -1)[..., 1],
    "padded_rows": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "every_other_row": lambda x: torch.cat([x, x], 1)[:, ::2],
    "expanded_first": lambda x: x[:1].expand_as(x),
    "expanded_middle": lambda x: x[:, :1].expand_as(x),
    "expanded_last": lambda x: x[..., :1].expand_as(x),
    "expanded_all": lambda x: x[0, 0, 0].expand_as(x),
    "overlapping_windows": lambda x: x.flatten().as_strided(x.shape, (1, 1, 1)),
}


@pytest.mark.parametrize("other_layout", LAYOUTS)
@pytest.mark.parametrize("self_layout", LAYOUTS)
def test_any_strides(self_layout: str, other_layout: str, threads: int) -> None:
    one = LAYOUTS[self_layout](tensor(5, 70, 300))
    other = LAYOUTS[other_layout](tensor(5, 70, 300, seed=1))
    assert add_custom(one, other).equal(one + other)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_strided_sum_of_every_dtype(dtype: torch.dtype) -> None:
    one, other = tensor(40, 150, dtype=dtype).t(), tensor(150, 40, dtype=dtype, seed=1)
    assert same_bits(add_custom(one, other), (one + other).contiguous())


SHAPES_OF_ALL_KINDS = [
    (),
    (1,),
    (0,),
    (3, 0, 5),
    (1, 1, 1),
    (2, 1, 3),
    (33, 129),
    (1, 200_000),
    (200_000, 1),
    (3, 2, 2, 5, 2, 3),
    (2,) * 12,
]


@pytest.mark.parametrize("shape", SHAPES_OF_ALL_KINDS)
def test_any_shape(shape: tuple[int, ...]) -> None:
    one, other = tensor(*shape), tensor(*shape, seed=1)
    result = add_custom(one, other)
    assert result.shape == shape
    assert result.equal(one + other)
    reverse = tuple(range(one.dim()))[::-1]
    assert add_custom(one.permute(reverse), other.permute(reverse)).equal(result.permute(reverse))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_result_is_contiguous(layout: str) -> None:
    one = LAYOUTS[layout](tensor(4, 5, 6))
    result = add_custom(one, one)
    assert result.stride() == torch.empty(4, 5, 6).stride()


@pytest.mark.parametrize("shape", [(), (0,), (3,)])
def test_result_is_no_alias(shape: tuple[int, ...]) -> None:
    one, zero = tensor(*shape), torch.zeros(shape)
    before = one.clone()
    add_custom(one, zero).fill_(7)
    assert one.equal(before)
    assert zero.equal(torch.zeros(shape))


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_nan(dtype: torch.dtype) -> None:
    special = torch.tensor([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan], dtype=dtype)
    one, other = (x.flatten() for x in torch.meshgrid(special, special, indexing="ij"))
    torch.testing.assert_close(add_custom(one, other), one + other, rtol=0, atol=0, equal_nan=True)
    assert (
        add_custom(one, other)
        .signbit()[~(one + other).isnan()]
        .equal((one + other).signbit()[~(one + other).isnan()])
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_largest_and_smallest_values(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    subnormal = limits.smallest_normal * limits.eps
    edges = torch.tensor(
        [
            limits.max,
            limits.min,
            limits.tiny,
            limits.eps,
            1.0,
            subnormal,
            -subnormal,
            3 * subnormal,
        ],
        dtype=dtype,
    )
    one, other = (x.flatten() for x in torch.meshgrid(edges, edges, indexing="ij"))
    assert same_bits(add_custom(one, other), one + other)


def test_every_fp16_value_is_added_right() -> None:
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
    for other in (0.0, -0.0, 1.0, 6e-8, 65504.0, -0.333, math.inf):
        both = torch.full_like(every, other)
        torch.testing.assert_close(
            add_custom(every, both), every + both, rtol=0, atol=0, equal_nan=True
        )


def test_every_bf16_value_is_added_right() -> None:
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.bfloat16)
    for other in (0.0, -0.0, 1.0, 1e-40, 3e38, -0.333, -math.inf):
        both = torch.full_like(every, other)
        torch.testing.assert_close(
            add_custom(every, both), every + both, rtol=0, atol=0, equal_nan=True
        )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    one = torch.tensor([limits.max, limits.min, limits.max, limits.min], dtype=dtype)
    other = torch.tensor([1, -1, limits.max, limits.min], dtype=dtype)
    expected = torch.tensor([limits.min, limits.max, -2, 0], dtype=dtype)
    assert add_custom(one, other).equal(expected)


SHAPES = "add_custom: argument 'other' must have the shape of 'self' {}, got {}; {}"
HINT = "add_custom does not broadcast: expand the smaller one before"
DTYPES = "float16, bfloat16, float32, float64, int32 or int64"

MISMATCHES: dict[str, tuple[Callable[[], tuple[Tensor, Tensor]], str]] = {
    "fewer_dimensions": (
        lambda: (torch.zeros(2, 3), torch.zeros(3)),
        SHAPES.format("[2, 3]", "[3]", HINT),
    ),
    "size_one": (
        lambda: (torch.zeros(2, 1), torch.zeros(2, 3)),
        SHAPES.format("[2, 1]", "[2, 3]", HINT),
    ),
    "scalar_tensor": (
        lambda: (torch.zeros(2), torch.zeros(())),
        SHAPES.format("[2]", "[]", HINT),
    ),
    "other_dtype": (
        lambda: (torch.zeros(2), torch.zeros(2).half()),
        "add_custom: argument 'other' must have the dtype of 'self' (float32), got float16",
    ),
    "refused_dtype": (
        lambda: (torch.zeros(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)),
        f"add_custom: argument 'self' must be {DTYPES}, got bool",
    ),
}


@pytest.mark.parametrize("mismatch", MISMATCHES)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_error_is_the_same_from_kernel_and_fake(mismatch: str, device: str) -> None:
    make, message = MISMATCHES[mismatch]
    one, other = (x.to(device) for x in make())
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}"):
        add_custom(one, other)


def test_error_on_two_devices_names_both() -> None:
    message = "add_custom: argument 'other' must be on the device of 'self' (cpu), got meta"
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}"):
        add_custom(torch.zeros(2), torch.zeros(2, device="meta"))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_none_is_refused_by_its_name(device: str) -> None:
    x = torch.zeros(2, device=device)
    for arguments, name in (((None, x), "self"), ((x, None), "other")):
        with pytest.raises(RuntimeError) as caught:
            add_custom(*arguments)
        assert str(caught.value) == f"add_custom: argument '{name}' must be a tensor, got None"
