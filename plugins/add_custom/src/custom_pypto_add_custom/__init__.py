"""add_custom, elementwise addition, and its backward: what the plugin gives besides its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl
from torch import Tensor

from . import reference, samples

DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
)
"""What add_custom adds, on the device that allows most: the CPU."""


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Any]]:
    """Shapes, dtypes and errors, for torch.compile and torch.export."""
    return {"add_custom": fake_add_custom, "add_custom_backward": fake_add_custom_backward}


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """Derivatives: each op is the other's, so they exist to any order."""
    return {
        "add_custom": Autograd(backward=_backward_of_add_custom),
        "add_custom_backward": Autograd(backward=_backward_of_add_custom_backward),
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """Converters to GE; called only where torchair is."""
    from . import converter

    return {
        "add_custom": converter.add_custom,
        "add_custom_backward": converter.add_custom_backward,
    }


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Arguments that the conformance suite calls the ops with."""
    return {
        "add_custom": samples.add_custom,
        "add_custom_backward": samples.add_custom_backward,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """What the ops are compared with."""
    return {
        "add_custom": Reference(reference.add_custom),
        "add_custom_backward": Reference(reference.add_custom_backward),
    }


def fake_add_custom(self: Tensor, other: Tensor) -> Tensor:
    """An empty contiguous tensor like `self`.

    Raises:
        RuntimeError: the kernels would refuse the arguments too; they say it in the same words.
    """
    _check(
        self.device == other.device,
        "other",
        lambda: f"must be on the device of 'self' ({self.device}), got {other.device}",
    )
    _check(
        self.dtype == other.dtype,
        "other",
        lambda: f"must have the dtype of 'self' ({_name(self.dtype)}), got {_name(other.dtype)}",
    )
    _check_same_shape(self, other)
    _check(
        self.dtype in DTYPES,
        "self",
        lambda: f"must be {_any_of(DTYPES)}, got {_name(self.dtype)}",
    )
    return torch.empty_like(self, memory_format=torch.contiguous_format)


def fake_add_custom_backward(self: Tensor) -> tuple[Tensor, Tensor]:
    """Two empty tensors like `self`."""
    return torch.empty_like(self), torch.empty_like(self)


def _backward_of_add_custom(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    grads: tuple[Tensor, Tensor] = torch.ops.custom_pypto.add_custom_backward(grad)
    return grads


def _backward_of_add_custom_backward(ctx: Any, grad_self: Tensor, grad_other: Tensor) -> Tensor:
    grad: Tensor = torch.ops.custom_pypto.add_custom(grad_self, grad_other)
    return grad


def _check_same_shape(self: Tensor, other: Tensor) -> None:
    def message() -> str:
        return (
            f"must have the shape of 'self' {list(self.shape)}, got {list(other.shape)};"
            " add_custom does not broadcast: expand the smaller one before"
        )

    _check(self.dim() == other.dim(), "other", message)
    # Size by size: a symbolic size then becomes a guard, and the shape stays dynamic.
    for one, another in zip(self.shape, other.shape, strict=True):
        _check(one == another, "other", message)


def _check(condition: bool, argument: str, message: Callable[[], str]) -> None:
    torch._check(  # type: ignore[no-untyped-call]
        condition, lambda: f"add_custom: argument '{argument}' {message()}"
    )


def _any_of(dtypes: tuple[torch.dtype, ...]) -> str:
    *most, last = map(_name, dtypes)
    return f"{', '.join(most)} or {last}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
