"""Derivatives, a converter and samples, which ops.toml and the kernels do not give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, SampleInput, hookimpl
from torch import Tensor

from .ops import *


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """Derivatives: each op is the other's, so they exist to any order."""
    return {
        "add_custom": Autograd(_backward_of_add_custom),
        "add_custom_backward": Autograd(_backward_of_add_custom_backward),
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """How torchair expresses add_custom_backward: as two nodes, which ops.toml cannot say."""
    from torchair import ge

    return {"add_custom_backward": lambda self: (ge.Clone(self), ge.Clone(self))}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls besides those drawn from ops.toml: strides, and work for more than one thread."""
    return {"add_custom": _samples, "add_custom_backward": _backward_samples}


def _backward_of_add_custom(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    grads: tuple[Tensor, Tensor] = torch.ops.custom_pypto.add_custom_backward(grad)
    return grads


def _backward_of_add_custom_backward(ctx: Any, grad_self: Tensor, grad_other: Tensor) -> Tensor:
    grad: Tensor = torch.ops.custom_pypto.add_custom(grad_self, grad_other)
    return grad


def _samples(device: str) -> Iterator[SampleInput]:
    dtypes = [torch.float16, torch.bfloat16, torch.float32, torch.int32]
    # NPU kernels take no others.
    dtypes += [torch.float64, torch.int64] if device == "cpu" else []
    for dtype in dtypes:
        yield SampleInput(
            _pair((7, 33), device, dtype),
            name=str(dtype).removeprefix("torch."),
            resized=SampleInput(_pair((5, 64), device, dtype)),
        )
    one, other = _pair((40, 50), device)
    yield SampleInput((one.t(), other.reshape(50, 40)), name="transposed")
    yield SampleInput((one[:1].expand(40, 50), other), name="expanded")
    yield SampleInput((one, one), name="same_tensor_twice")
    for name, shape in {"scalar": (), "empty": (3, 0, 2), "large": (3, 40_000)}.items():
        yield SampleInput(_pair(shape, device), name=name)


def _backward_samples(device: str) -> Iterator[SampleInput]:
    for each in _samples(device):
        resized = SampleInput(each.resized.args[:1]) if each.resized else None
        yield SampleInput(each.args[:1], name=each.name, resized=resized)


def _pair(
    shape: tuple[int, ...], device: str, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn((2, *shape), generator=generator, device="cpu").mul(100).to(device, dtype)
    return values[0], values[1]
