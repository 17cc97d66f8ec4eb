"""Arguments on several devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.outputs import tensor_outputs

from .fakes import fake_outputs
from .side_effects import named_arguments


def check_devices(case: Case) -> None:
    """With one tensor on meta and the others elsewhere, the op returns nothing unwritten.

    Each tensor argument in turn is moved to meta. torch then runs the fake, which computes nothing.
    An output or a mutated argument on another device is then unwritten memory. So the op must raise
    an error, or return and mutate tensors on meta only; in FakeTensorMode too.
    """
    call = case.copy()
    if len(call.tensors) < 2:
        return
    for name, tensor in call.tensors.items():
        mixed = call.replace({name: tensor.to("meta")})
        where = f"{case.name} with argument '{name}' on meta"
        _check(mixed, lambda each: tensor_outputs(each.run()), f"{where}: the op")
        _check(mixed, fake_outputs, f"{where} in FakeTensorMode: the op")


def _check(mixed: Case, run: Callable[[Case], Mapping[str, torch.Tensor]], which: str) -> None:
    try:
        outputs = run(mixed)
    except Exception:
        # Any type of error will do.
        return
    for name, tensor in {**outputs, **named_arguments(mixed.mutable)}.items():
        if not tensor.is_meta:
            raise AssertionError(
                f"{which} raises no error, and {name} is on {tensor.device}, where nothing was"
                " written: torch runs the fake as soon as one argument is on meta. Let the fake"
                " compare the devices of its arguments, as the kernel does, and raise an error that"
                " names the one that differs"
            )
