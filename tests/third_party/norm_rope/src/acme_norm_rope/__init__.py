"""torch.ops.custom_pypto.norm_rope: its derivative. All else is in ops.toml and the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, hookimpl
from torch import Tensor

from .ops import *


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The derivative by ``x`` and ``weight``; the tables are keyword-only and have none."""
    return {"norm_rope": Autograd(_backward, _keep, is_once_differentiable=True)}


def _keep(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Tensor
) -> None:
    tables = keyword_only_inputs
    ctx.save_for_backward(*inputs, tables["cos"], tables["sin"])
    ctx.eps = tables["eps"]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
    x, weight, cos, sin = (each.double() for each in ctx.saved_tensors)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)

    def rotated(x: Tensor, weight: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.square().mean(-1, True) + ctx.eps) * weight
        first, second = y.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    _, pull = torch.func.vjp(rotated, x, weight)
    return tuple(each.to(grad.dtype) for each in pull(grad.double()))
