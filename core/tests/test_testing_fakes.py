"""Each check of fakes, compilation, export and gradients finds the fault that it is for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from custom_pypto_testing import checks
from faulty_ops import (
    TWICE,
    case,
    like,
    registered,
    twice,
    vector,
)
from torch import Tensor

WRONG_FAKES = {
    "shape": (
        lambda x: x.new_empty(x.shape[0] + 1, x.shape[1]),
        r"\[4, 4\] by the fake, but \[3, 4\]",
    ),
    "dtype": (
        lambda x: torch.empty_like(x, dtype=torch.float32),
        "torch.float32 by the fake, but torch.float64",
    ),
    "strides": (lambda x: x.new_empty(x.shape[::-1]).t(), r"\[1, 3\] by the fake, but \[4, 1\]"),
    "device": (lambda x: torch.empty_like(x, device="meta"), "meta by the fake, but cpu"),
}


@pytest.mark.parametrize("what", WRONG_FAKES)
@pytest.mark.parametrize("check", [checks.check_fake, checks.check_symbolic_fake])
def test_wrong_fake_is_found(check: Any, what: str) -> None:
    fake, message = WRONG_FAKES[what]
    with (
        registered(TWICE, twice, fake=fake) as op,
        pytest.raises(AssertionError, match=f"the {what} of output is {message}"),
    ):
        check(case(op, vector(12).view(3, 4)))


@pytest.mark.parametrize("check", [checks.check_fake, checks.check_strides])
def test_kernel_whose_output_should_be_contiguous_is_told_how(check: Any) -> None:
    x = vector(12).view(3, 4)
    with (
        registered(TWICE, lambda x: x * 2, fake=like) as op,
        pytest.raises(
            AssertionError,
            match=r"\[1, \d\] by the kernel; outputs are contiguous unless .* as by \.contig",
        ),
    ):
        check(case(op, x.t() if check is checks.check_fake else x))


def test_fake_with_another_number_of_outputs_is_found() -> None:
    schema = "several(Tensor x) -> Tensor[]"
    with (
        registered(schema, lambda x: [x * 2, x * 3], fake=lambda x: [like(x)]) as op,
        pytest.raises(AssertionError, match=r"the fake returns \['output\[0\]'\], the kernel"),
    ):
        checks.check_fake(case(op, vector(6)))


def test_fake_that_fixes_a_size_is_found() -> None:
    with (
        registered(TWICE, twice, fake=lambda x: x.new_empty(int(x.shape[0]))) as op,
        pytest.raises(
            AssertionError, match="fixes dimension 0 of argument 'x' to 6, but 'resized'"
        ),
    ):
        checks.check_symbolic_fake(case(op, vector(6), resized=(vector(9),)))


def test_fake_that_is_right_for_one_size_only_is_found() -> None:
    with (
        registered(TWICE, twice, fake=lambda x: x.new_empty(12 - x.shape[0])) as op,
        pytest.raises(AssertionError, match=r"at the sizes of 'resized', the shape .* \[3\] by"),
    ):
        checks.check_symbolic_fake(case(op, vector(6), resized=(vector(9),)))


def test_op_that_cannot_be_compiled_is_found() -> None:
    with (
        registered(TWICE, twice) as op,
        pytest.raises(Exception, match="does not support running with fake tensors"),
    ):
        checks.check_compiled(case(op, vector(6)))


def test_result_that_compilation_changes_is_found() -> None:
    def kernel(x: Tensor) -> Tensor:
        return x * 2 if _called_by_eager() else x * 3

    eager = iter([True, False])

    def _called_by_eager() -> bool:
        return next(eager)

    with (
        registered(TWICE, kernel, fake=like) as op,
        pytest.raises(AssertionError, match="output: 6 of 6 elements differ when compiled"),
    ):
        checks.check_compiled(case(op, vector(6)))


def test_recompilation_is_found() -> None:
    def fake(x: Tensor) -> Tensor:
        return x.new_empty(x.shape) if x.shape[0] < 8 else like(x)

    with (
        registered(TWICE, twice, fake=fake) as op,
        pytest.raises(AssertionError, match="compiled again for the sizes of 'resized'"),
    ):
        checks.check_not_recompiled(case(op, vector(6), resized=(vector(9),)), "aot_eager")


def test_op_that_cannot_be_exported_dynamically_is_found() -> None:
    with (
        registered(TWICE, twice, fake=lambda x: x.new_empty(int(x.shape[0]))) as op,
        pytest.raises(Exception, match=r"specialized|ConstraintViolation|marked.*as dynamic"),
    ):
        checks.check_exported(case(op, vector(6), resized=(vector(9),)))


def test_wrong_gradient_is_found() -> None:
    with (
        registered(TWICE, twice, fake=like, backward=lambda ctx, grad: grad * 3) as op,
        pytest.raises(
            AssertionError, match=r"(?s)the gradients with respect to x are wrong: Jacobian"
        ),
    ):
        checks.check_gradients(case(op, vector(6)))


def test_wrong_second_gradient_is_found() -> None:
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2 * ctx.saved_tensors[0].detach()

    with registered(
        "square(Tensor x) -> Tensor",
        lambda x: x.contiguous() ** 2,
        fake=like,
        backward=backward,
        setup_context=setup_context,
    ) as op:
        checks.check_gradients(case(op, vector(6)))
        with pytest.raises(AssertionError, match="the second-order gradients with respect to x"):
            checks.check_second_gradients(case(op, vector(6)))
