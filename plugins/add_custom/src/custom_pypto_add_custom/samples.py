"""Arguments that show what the ops take: dtypes, strides, and sizes from none to many."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

# The first four on every device, all on the CPU.
_DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int32,
    torch.float64,
    torch.int64,
)
# The last is enough for two threads.
_SHAPES = {"scalar": (), "empty": (3, 0, 2), "one": (1, 1), "large": (3, 40_000)}


def add_custom(device: str) -> Iterator[SampleInput]:
    """Samples of add_custom."""
    for dtype in _dtypes(device):
        yield SampleInput(
            args=_pair((7, 33), device, dtype),
            name=str(dtype).removeprefix("torch."),
            resized=SampleInput(args=_pair((5, 64), device, dtype)),
        )
    for name, shape in _SHAPES.items():
        yield SampleInput(args=_pair(shape, device), name=name)
    one, other = _pair((40, 50), device)
    yield SampleInput(args=(one.t(), other.reshape(50, 40)), name="transposed")
    yield SampleInput(args=(one[:1].expand(40, 50), other), name="expanded")
    yield SampleInput(args=(one[1::2, ::3], one[::2, 1::3]), name="strided")
    yield SampleInput(args=(one, one), name="same_tensor_twice")


def add_custom_backward(device: str) -> Iterator[SampleInput]:
    """Samples of add_custom_backward."""
    for dtype in _dtypes(device):
        yield SampleInput(
            args=_pair((7, 33), device, dtype)[:1],
            name=str(dtype).removeprefix("torch."),
            resized=SampleInput(args=_pair((5, 64), device, dtype)[:1]),
        )
    for name, shape in _SHAPES.items():
        yield SampleInput(args=_pair(shape, device)[:1], name=name)
    grad, _ = _pair((40, 50), device)
    yield SampleInput(args=(grad.t(),), name="transposed")
    yield SampleInput(args=(grad[:1].expand(40, 50),), name="expanded")


def _pair(
    shape: tuple[int, ...], device: str, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn((2, *shape), generator=generator).mul(100).to(device, dtype)
    return values[0], values[1]


def _dtypes(device: str) -> tuple[torch.dtype, ...]:
    return _DTYPES if device == "cpu" else _DTYPES[:4]
