"""The op linear: its derivatives and samples, which ops.toml and the kernels do not give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from custom_pypto_plugin import Autograd, SampleInput, hookimpl
from torch import Tensor

from .ops import *


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """Derivatives to any order: they are products of the same form."""
    return {"linear": Autograd(_backward, setup_context=_setup_context)}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls besides those drawn from ops.toml: few rows and many, work for more than one thread."""
    return {"linear": _samples}


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    given, weight = ctx.saved_tensors
    product = torch.ops.custom_pypto.linear
    for_input, for_weight, *for_bias = ctx.needs_input_grad  # without a bias that is not given
    rows = _as_rows(grad)
    return (
        product(grad, weight.t()) if for_input else None,
        product(rows.t(), _as_rows(given).t()) if for_weight else None,
        rows.sum(0) if any(for_bias) else None,
    )


def _as_rows(x: Tensor) -> Tensor:
    # The gradients of a batch, by vmap, cannot be flattened.
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _samples(device: str) -> Iterator[SampleInput]:
    dtypes = [torch.bfloat16, torch.float16, torch.float32]
    dtypes += [torch.float64] if device == "cpu" else []  # NPUs have none
    for dtype in dtypes:
        name = str(dtype).removeprefix("torch.")
        for shape, resized in (((3, 5), (4, 2)), ((7,), (80,))):
            calls = (_call(each, 33, 9, device, dtype) for each in (shape, resized))
            given, other = (SampleInput(call) for call in calls)
            yield SampleInput(given.args, name=f"{name}_{len(shape) + 1}d", resized=other)
    for name, rows, depth, columns in (
        # NPUs take no vectors.
        ("one_row", () if device == "cpu" else (1,), 40, 24),
        ("no_row", (0,), 8, 3),
        ("no_column", (2,), 8, 0),
        ("no_number", (2, 3), 0, 4),
        ("few_rows_large", (5,), 1030, 700),
        ("many_rows_large", (400,), 300, 130),
    ):
        args = _call(rows, depth, columns, device, torch.bfloat16)
        yield SampleInput(args, name=name)
        yield SampleInput(args[:2], name=f"{name}_without_bias")


def _call(
    rows: tuple[int, ...], depth: int, columns: int, device: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    shapes = ((*rows, depth), (columns, depth), (columns,))
    given, weight, bias = (
        torch.randn(each, generator=random, device="cpu", dtype=torch.float64) for each in shapes
    )
    weight /= max(1, depth) ** 0.5
    return given.to(device, dtype), weight.to(device, dtype), bias.to(device, dtype)
