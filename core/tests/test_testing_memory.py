"""Each check of threads, strides, unwritten memory and devices finds the fault that it is for."""

from __future__ import annotations

import pytest
import torch
from custom_pypto_testing import checks
from faulty_ops import (
    ACCUMULATE,
    PLUS,
    TWICE,
    accumulate,
    case,
    expect_one_device,
    like,
    registered,
    twice,
    vector,
)
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def test_result_that_depends_on_threads_is_found() -> None:
    before = torch.get_num_threads()
    with (
        registered(TWICE, lambda x: x + x * torch.get_num_threads(), fake=like) as op,
        pytest.raises(AssertionError, match="output: 6 of 6 elements differ with two threads"),
    ):
        checks.check_threads(case(op, vector(6)))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("size", [(6,), (2, 3)])
def test_kernel_that_ignores_strides_is_found(size: tuple[int, ...]) -> None:
    def kernel(x: Tensor) -> Tensor:
        strides = torch.empty(x.shape).stride()
        return x.as_strided(x.shape, strides, 0) * 2

    with (
        registered(TWICE, kernel, fake=like) as op,
        pytest.raises(AssertionError, match="argument 'x' with gaps between its elements: output"),
    ):
        checks.check_strides(case(op, vector(6).view(size)))


def test_kernel_that_ignores_the_order_of_dimensions_is_found() -> None:
    def kernel(x: Tensor) -> Tensor:
        if x.stride(0) == 6:
            return x * 2
        return x.as_strided(x.shape, (3, 1)) * 2

    with (
        registered(TWICE, kernel, fake=like) as op,
        pytest.raises(AssertionError, match="argument 'x' transposed in memory: output"),
    ):
        checks.check_strides(case(op, vector(6).view(2, 3)))


def test_write_into_gaps_is_found() -> None:
    def kernel(x: Tensor, total: Tensor) -> None:
        result = total + x
        total.as_strided((total.stride(0) * 6,), (1,), 0).zero_()
        total.copy_(result)

    with (
        registered(ACCUMULATE, kernel) as op,
        pytest.raises(AssertionError, match=r"'total' with gaps .* wrote between the argument's"),
    ):
        checks.check_strides(case(op, vector(6), vector(6, seed=1)))


def test_op_may_ask_for_contiguous_arguments() -> None:
    def kernel(x: Tensor) -> Tensor:
        if not x.is_contiguous():
            raise RuntimeError("twice: argument 'x' must be contiguous, got strides [2]")
        return x * 2

    with registered(TWICE, kernel, fake=like) as op:
        checks.check_strides(case(op, vector(6)))


def test_fake_that_keeps_strides_which_the_kernel_does_not_is_found() -> None:
    with (
        registered("twice(Tensor x) -> Tensor", twice, fake=torch.empty_like) as op,
        pytest.raises(AssertionError, match=r"'x' transposed in memory: .*\[1, 2\] by the fake"),
    ):
        checks.check_strides(case(op, vector(6).view(2, 3)))


def test_other_error_on_strides_is_not_accepted() -> None:
    def kernel(x: Tensor) -> Tensor:
        if not x.is_contiguous():
            raise RuntimeError("invalid memory access")
        return x * 2

    with (
        registered(TWICE, kernel, fake=like) as op,
        pytest.raises(RuntimeError, match="invalid memory access"),
    ):
        checks.check_strides(case(op, vector(6)))


def test_output_that_nobody_wrote_is_found() -> None:
    with (
        registered(PLUS, lambda x, y: x + y, fake=lambda x, y: like(x)) as op,
        pytest.raises(
            AssertionError,
            match=r"^plus with argument 'y' on meta: the op raises no error, and output is on cpu,",
        ),
    ):
        checks.check_devices(case(op, vector(6), vector(6, seed=1)))


def test_mutated_argument_that_nobody_wrote_is_found() -> None:
    with (
        registered(ACCUMULATE, accumulate, fake=lambda x, total: None) as op,
        pytest.raises(AssertionError, match=r"'x' on meta: the op .* argument 'total' is on cpu,"),
    ):
        checks.check_devices(case(op, vector(6), vector(6, seed=1)))


def test_fake_that_tells_devices_apart_outside_fake_tensor_mode_only_is_found() -> None:
    def fake(x: Tensor, y: Tensor) -> Tensor:
        if not isinstance(x, FakeTensor):
            expect_one_device(x, y)
        return like(x)

    with (
        registered(PLUS, lambda x, y: x + y, fake=fake) as op,
        pytest.raises(AssertionError, match=r"'y' on meta in FakeTensorMode: the op .* on cpu"),
    ):
        checks.check_devices(case(op, vector(6), vector(6, seed=1)))


def test_result_on_meta_is_accepted() -> None:
    with registered(PLUS, lambda x, y: x + y, fake=lambda x, y: like(x).to("meta")) as op:
        checks.check_devices(case(op, vector(6), vector(6, seed=1)))
