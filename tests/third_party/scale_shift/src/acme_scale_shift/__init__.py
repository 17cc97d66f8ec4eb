"""torch.ops.custom_pypto.scale_shift: what the plugin contributes beyond its library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, Reference, hookimpl


def _fake(self: torch.Tensor, scale: float, shift: float) -> torch.Tensor:
    return torch.empty_like(self, memory_format=torch.contiguous_format)


def _keep_scale(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.scale = inputs[1]


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    return grad * ctx.scale, None, None


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Any]]:
    """The shape rule."""
    return {"scale_shift": _fake}


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The derivative by ``self``; ``scale`` and ``shift`` are numbers and have none."""
    return {"scale_shift": Autograd(_backward, setup_context=_keep_scale)}


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The operator of torchair's graphs."""
    from acme_scale_shift.converter import convert_scale_shift

    return {"scale_shift": convert_scale_shift}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Any]]:
    """Inputs that the op must be right on."""
    from acme_scale_shift.samples import samples

    return {"scale_shift": samples}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The op in plain PyTorch."""
    from acme_scale_shift.reference import scale_shift

    return {"scale_shift": Reference(scale_shift)}
