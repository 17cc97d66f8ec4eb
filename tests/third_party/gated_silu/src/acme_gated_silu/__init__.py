"""torch.ops.custom_pypto.gated_silu: kernels that are Python functions, for every device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from custom_pypto_plugin import hookimpl

from .ops import *


@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernels: composed of torch ops here; Triton, TileLang or PyPTO would do as well."""
    return {
        "gated_silu": {"CompositeExplicitAutograd": _gated_silu},
        "gated_silu_": {"CompositeExplicitAutograd": _gated_silu_},
    }


def _gated_silu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    # In float32, torch gives some elements another last bit with another number of threads.
    wide = gate.double()
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return result.copy_(x * wide * torch.sigmoid(wide))


def _gated_silu_(x: torch.Tensor, gate: torch.Tensor) -> None:
    x.copy_(_gated_silu(x, gate))
