"""Inputs that scale_shift must be right on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from custom_pypto.core import SampleInput

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def samples(device: str) -> Iterator[SampleInput]:
    """Every dtype; a transposed, an empty and a 0-dimensional tensor."""
    generator = torch.Generator().manual_seed(2)
    for dtype in _DTYPES:
        x = torch.randn(5, 7, generator=generator).to(device, dtype)
        yield SampleInput((x, 0.5, -3.0), name=str(dtype).removeprefix("torch."))
    x = torch.randn(4, 6, generator=generator).to(device)
    yield SampleInput((x.t(), 2.0, 1.0), name="transposed")
    yield SampleInput((x[:0], 2.0, 1.0), name="empty")
    yield SampleInput((x[0, 0], 2.0, 1.0), name="0-d")
