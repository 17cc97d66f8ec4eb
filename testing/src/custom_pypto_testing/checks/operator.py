"""PyTorch's own checks of a custom op: opcheck and gradcheck."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck

from custom_pypto_testing.case import Case, one_of_each_graph
from custom_pypto_testing.outputs import tensor_outputs

_SLOW_UP_TO = 128
"""Elements up to which every entry of the Jacobian is compared; above, random projections of it."""
_AOT_DISPATCH = "test_aot_dispatch_dynamic"
_TESTS = ("test_faketensor", "test_schema", _AOT_DISPATCH, "test_autograd_registration")
_DEVICES_OF_AUTOGRAD_REGISTRATION = ("cpu", "cuda", "xpu")


def check_operator(case: Case, *, with_gradients: bool = True) -> None:
    """`torch.library.opcheck` passes, also with gradients if the op is differentiable."""
    _opcheck(case, requires_grad=False)
    if with_gradients and case.op.is_differentiable:
        _opcheck(case, requires_grad=True)


def left_out_of_opcheck(case: Case) -> dict[str, str]:
    """Return opcheck's tests that cannot run on a call, each with the reason."""
    tensors, reasons = case.tensors.values(), {}
    if any(each.is_floating_point() and each.itemsize == 1 for each in tensors):
        # Other checks compare bytes.
        reasons["test_schema"] = "torch compares arguments by arithmetic, which float8 lacks"
    if any(each.device.type not in _DEVICES_OF_AUTOGRAD_REGISTRATION for each in tensors):
        known = ", ".join(_DEVICES_OF_AUTOGRAD_REGISTRATION)
        reasons["test_autograd_registration"] = f"torch has it for tensors on {known} alone"
    return reasons


def _opcheck(case: Case, *, requires_grad: bool) -> None:
    call = case.copy()
    if requires_grad:
        for tensor in call.differentiable.values():
            tensor.requires_grad_()
    # With gradients torch adds the sums of the results in place. That fails if the first result has
    # integers.
    first = next(iter(tensor_outputs(call.copy().run()).values()), None) if requires_grad else None
    has_integers_first = first is not None and not first.is_floating_point()
    # check_compiled traces the other graphs in the same way, and compares bits.
    is_traced = requires_grad or not case.is_on_cpu or case is one_of_each_graph(case.op.cases)[0]
    is_own = has_integers_first or call.op.is_random
    left_out = {*left_out_of_opcheck(case), *([_AOT_DISPATCH] if is_own or not is_traced else [])}
    results = _results(call, [test for test in _TESTS if test not in left_out])
    if is_traced and is_own:
        results[_AOT_DISPATCH] = _aot_dispatch_of_floating_first(call)
    failed = {test: reason for test, reason in results.items() if reason != "SUCCESS"}
    if failed:
        raise AssertionError(
            f"{case.name}: torch.library.opcheck fails"
            + (" with arguments that require grad" if requires_grad else "")
            + "".join(f"\n{test}: {reason}" for test, reason in failed.items())
        )


def _results(call: Case, tests: list[str]) -> dict[str, Any]:
    """Return what opcheck says of each test: "SUCCESS" or an exception."""
    with warnings.catch_warnings():
        # torch 2.15 warns of itself, because it reads .grad of a tensor that is no leaf. The filter
        # is for torch's modules only: an op that does the same is reported.
        warnings.filterwarnings(
            "ignore",
            r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed",
            UserWarning,
            r"torch(\.|$)",
        )
        return torch.library.opcheck(
            call.op.overload, call.args, dict(call.kwargs), test_utils=tests, raise_exception=False
        )


def _aot_dispatch_of_floating_first(call: Case) -> Any:
    """Run opcheck's test on the op with its floating-point results before the others.

    opcheck draws anew for each result, so a random op's results are not compared.
    """
    from torch.testing._internal import optests

    check: Any = optests.aot_autograd_check  # type: ignore[attr-defined]

    def results(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
        tensors = tensor_outputs(call.op.overload(*args, **kwargs)).values()
        return sorted(tensors, key=lambda each: not each.is_floating_point())

    try:
        options = {"check_gradients": "auto", "skip_correctness_check": call.op.is_random}
        check(results, call.args, dict(call.kwargs), True, **options)
    except Exception as error:
        return error
    return "SUCCESS"


def check_gradients(case: Case) -> None:
    """The backward formula agrees with numerical differences (`torch.autograd.gradcheck`)."""
    _check_gradients(case, gradcheck, "gradients")


def check_second_gradients(case: Case) -> None:
    """The backward formula has right derivatives (`torch.autograd.gradgradcheck`).

    Or its derivative is an error that names the op, as for an `Autograd` that is once
    differentiable.
    """
    try:
        _check_gradients(case, gradgradcheck, "second-order gradients")
    except AssertionError as error:
        if not str(error.__cause__).startswith(f"{case.name} has no second derivative"):
            raise


def _check_gradients(case: Case, check: Callable[..., bool], what: str) -> None:
    call, copies = case.copy(), case.copy().immutable.items()
    inputs = {name: each.clone() for name, each in copies if each.dtype == torch.float64}

    def function(names: list[str], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = call.replace(dict(zip(names, tensors, strict=True))).run()
        return tuple(t for t in tensor_outputs(results).values() if t.is_floating_point())

    def run(names: list[str]) -> None:
        given = tuple(inputs[name] for name in names)
        elements = sum(each.numel() for each in given)
        if given:
            check(partial(function, names), given, fast_mode=elements > _SLOW_UP_TO)

    fault = f"the {what} with respect to {', '.join(inputs)} are wrong"
    try:
        given = [each.requires_grad_() for each in inputs.values()]
        if results := function([*inputs], *given):
            sums = [each.sum() for each in results if each.requires_grad]
            found = (
                torch.autograd.grad(sums, given, allow_unused=True) if sums else [None] * len(given)
            )
            flows = [name for name, each in zip(inputs, found, strict=True) if each is not None]
            run(flows)
            # A keyword-only argument need not have a gradient, and the first derivative tells.
            absent = [name for name in case.differentiable if name not in flows]
            fault = f"backward has no gradient for {', '.join(absent)}; the results depend on it"
            run(absent if check is gradcheck else [])
    except RuntimeError as error:
        raise AssertionError(f"{case.name}: {fault}: {error}") from error
