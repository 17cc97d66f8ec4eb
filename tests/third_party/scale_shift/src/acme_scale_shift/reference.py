"""scale_shift in plain PyTorch."""

from __future__ import annotations

import torch


def scale_shift(self: torch.Tensor, scale: float, shift: float) -> torch.Tensor:
    """Return self * scale + shift, computed in fp64, in the shape and dtype of ``self``."""
    return (self.double() * scale + shift).to(self.dtype)
