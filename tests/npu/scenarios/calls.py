"""Calls on NPUs: their errors, what they leave as it was, and how often they run phase 1."""

from collections.abc import Callable
from typing import Any

import custom_pypto_simulator
import torch
import torch_npu
from custom_pypto_testing.case import Case


def refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The error of a call, which must fail."""
    try:
        function(*args, **kwargs)
    except RuntimeError as error:
        torch_npu.npu.synchronize()
        return str(error)
    raise AssertionError("no error")


def refusal_before_writing(call: Case, function: Callable[..., Any] | None = None) -> str:
    """The error of a call, or of `function` with its arguments; no cache is written."""
    before = {name: cache.clone() for name, cache in call.mutable.items()}
    message = refusal(function or call.op.overload, *call.args, **call.kwargs)
    for name, cache in call.mutable.items():
        assert torch.equal(cache, before[name]), name
    return message


def count_phase_1(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, int]:
    """Return the results of a call, and how often phase 1 ran for it."""
    torch_npu.npu.synchronize()
    before = custom_pypto_simulator.phase_1_calls()
    returned = function(*args, **kwargs)
    torch_npu.npu.synchronize()
    return returned, custom_pypto_simulator.phase_1_calls() - before


def to_device(device: str, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments with each tensor on a device."""
    return {
        name: value.to(device) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }
