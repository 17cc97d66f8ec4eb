"""Arguments with other strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from custom_pypto_testing.call import Call
from custom_pypto_testing.case import Case

from .fakes import compare_fake
from .values import compare_mutated, compare_returned


@dataclass(frozen=True)
class Strided:
    """A tensor with other strides, and what lies between its elements."""

    tensor: torch.Tensor
    gaps: torch.Tensor


def with_gaps(tensor: torch.Tensor) -> Strided:
    """A copy of `tensor` in every second element of its memory, beginning with the second."""
    memory = tensor.new_ones(*tensor.shape, 2)
    return Strided(memory.select(-1, 1).copy_(tensor), memory.select(-1, 0))


def transposed(tensor: torch.Tensor) -> Strided:
    """A copy of `tensor` with its dimensions in reverse order in memory."""
    memory = tensor.new_empty(tensor.shape[::-1])
    order = list(reversed(range(tensor.dim())))
    return Strided(memory.permute(order).copy_(tensor), tensor.new_empty(0))


LAYOUTS: Mapping[str, Callable[[torch.Tensor], Strided]] = {
    "with gaps between its elements": with_gaps,
    "transposed in memory": transposed,
}


def check_strides(case: Case) -> None:
    """A strided argument gives the result of the sample, or an error that asks for contiguity.

    Each tensor argument in turn gets each layout of `LAYOUTS`. The op may refuse that with a
    RuntimeError that names the argument and says "contiguous". It may not write into the gaps. The
    fake's outputs must be like the kernel's for these strides, too.
    """
    plain = case.call()
    returned = plain.run()
    mode = FakeTensorMode()
    fakes = plain.map(lambda name, tensor: mode.from_tensor(tensor))
    for name in plain.tensors:
        for description, layout in LAYOUTS.items():
            try:
                call, actual = _run_with(case, name, layout)
                if call is None:
                    continue
                compare_returned(case, actual, returned)
                compare_mutated(case, call.mutable, plain.mutable)
                fake_call = fakes.replace({name: call.tensors[name]})
                compare_fake(case, fake_call, actual, mode)
            except AssertionError as error:
                raise AssertionError(
                    f"{case.name} with argument '{name}' {description}: {error}"
                ) from None


def _run_with(
    case: Case, name: str, layout: Callable[[torch.Tensor], Strided]
) -> tuple[Call | None, Any]:
    """Return the call with an argument in `layout`, and its result; None if the op refuses it."""
    call = case.call()
    strided = layout(call.tensors[name])
    call = call.replace({name: strided.tensor})
    gaps = strided.gaps.clone()
    try:
        returned = call.run()
    except RuntimeError as error:
        if f"'{name}'" in str(error) and "contiguous" in str(error):
            return None, None
        raise
    if not strided.gaps.equal(gaps):
        raise AssertionError("the kernel wrote between the argument's elements")
    return call, returned
