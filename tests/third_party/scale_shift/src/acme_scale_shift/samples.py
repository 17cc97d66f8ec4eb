"""Inputs that scale_shift must be right on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from custom_pypto_plugin import SampleInput

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def samples(device: str) -> Iterator[SampleInput]:
    """Every dtype at two sizes; a transposed, an empty and a 0-dimensional tensor."""
    for dtype in _DTYPES:
        yield SampleInput(
            (_normal((5, 7), device, dtype), 0.5, -3.0),
            name=str(dtype).removeprefix("torch."),
            resized=SampleInput((_normal((4, 9), device, dtype), 0.5, -3.0)),
        )
    x = _normal((4, 6), device, torch.float32)
    yield SampleInput((x.t(), 2.0, 1.0), name="transposed")
    yield SampleInput((x[:0], 2.0, 1.0), name="empty")
    yield SampleInput((x[0, 0], 2.0, 1.0), name="0-d")
    yield SampleInput((_normal((3, 40_000), device, torch.float32), 2.0, 1.0), name="large")


def _normal(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(shape, generator=generator).to(device, dtype)
