"""Rotary position embedding angles."""

from __future__ import annotations

import torch
from torch import Tensor

BASE = 10000.0


def sin_cos(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return (sin, cos), each bf16 [*positions.shape, size], for int64 positions.

    The second half repeats the first, as the op's rotation of halves expects.
    """
    frequencies = BASE ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = positions.double().unsqueeze(-1) * frequencies
    angles = torch.cat((angles, angles), -1)
    return angles.sin().bfloat16(), angles.cos().bfloat16()
