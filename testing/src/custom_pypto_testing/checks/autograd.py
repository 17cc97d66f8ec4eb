"""Gradients of ops that have an autograd formula."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd import gradcheck, gradgradcheck

from custom_pypto_testing.case import Case
from custom_pypto_testing.outputs import tensor_outputs

_SLOW_UP_TO = 128
"""Elements up to which every entry of the Jacobian is compared; above, random projections of it."""


def check_gradients(case: Case) -> None:
    """The backward formula agrees with numerical differences (`torch.autograd.gradcheck`)."""
    _check(case, gradcheck, "gradients")


def check_second_gradients(case: Case) -> None:
    """The backward formula has right derivatives (`torch.autograd.gradgradcheck`).

    Or its derivative is an error that names the op, as for an `Autograd` that is once
    differentiable.
    """
    refusal = f"{case.name} has no second derivative"
    try:
        _check(case, gradgradcheck, "second-order gradients")
    except AssertionError as error:
        if not str(error.__cause__).startswith(refusal):
            raise


def _check(case: Case, check: Callable[..., bool], what: str) -> None:
    call = case.copy()
    inputs = {name: tensor.clone().requires_grad_() for name, tensor in call.differentiable.items()}

    def function(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = call.replace(dict(zip(inputs, tensors, strict=True))).run()
        return tuple(t for t in tensor_outputs(results).values() if t.is_floating_point())

    elements = sum(tensor.numel() for tensor in inputs.values())
    try:
        check(function, tuple(inputs.values()), fast_mode=elements > _SLOW_UP_TO)
    except RuntimeError as error:
        raise AssertionError(
            f"{case.name}: the {what} with respect to {', '.join(inputs)} are wrong: {error}"
        ) from error
