"""torch.ops.custom_pypto.norm_rope: its derivative. All else is in ops.toml and the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, hookimpl

from .ops import *
from .ops import norm_rope_backward


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The derivative by ``x`` and ``weight``; the tables are keyword-only and have none."""
    return {"norm_rope": Autograd(_backward, _keep, is_once_differentiable=True)}


def _keep(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: torch.Tensor
) -> None:
    tables = keyword_only_inputs
    ctx.save_for_backward(*inputs, tables["cos"], tables["sin"])
    ctx.eps = tables["eps"]


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x, weight, cos, sin = ctx.saved_tensors
    return norm_rope_backward(grad, x, weight, cos=cos, sin=sin, eps=ctx.eps)
