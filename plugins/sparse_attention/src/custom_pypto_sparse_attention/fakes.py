"""The fake kernels that come from the contract, with what it does not know: declared weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from .weight_order import DECLARATION, LANES, NZ_WEIGHTS, weights_are_nz


def with_declaration(op: str, fake: Callable[..., Any]) -> Callable[..., Any]:
    """Make the fake kernel of an op refuse what cannot hold the declared bytes, as kernels do."""

    @functools.wraps(fake)
    def checked(*args: Any, **kwargs: Any) -> Any:
        made = fake(*args, **kwargs)
        if weights_are_nz():
            given = bind_arguments(contract(op), args, kwargs)
            for name in (each for each in NZ_WEIGHTS if each in given):
                _check_declared(op, name, given[name])
        return made

    return checked


def _check_declared(op: str, name: str, weight: Tensor) -> None:
    if weight.dim() != 2:
        return
    columns = weight.shape[1]
    for holds, what in (
        (weight.dtype != torch.float32, "be bfloat16 or float16"),
        (not isinstance(columns, int) or columns % LANES == 0, "have a multiple of 16 columns"),
        (weight.is_contiguous(), "be contiguous"),
    ):
        if not holds:
            dtype = str(weight.dtype).removeprefix("torch.")
            raise RuntimeError(
                f"{op}: argument '{name}' must {what} where 2-D weights are declared to hold"
                f" fractal NZ bytes ({DECLARATION}), got {dtype}{list(weight.shape)} with strides"
                f" {list(weight.stride())}; take the declaration back if this is a plain matrix"
            )
