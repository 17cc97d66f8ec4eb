"""torch.ops.custom_pypto.scale_shift: its derivative. All else is in ops.toml and the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, hookimpl


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The derivative by ``self``; ``scale`` and ``shift`` are numbers and have none."""
    return {"scale_shift": Autograd(_backward, setup_context=_keep_scale)}


def _keep_scale(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.scale = inputs[1]


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    return grad * ctx.scale, None, None
