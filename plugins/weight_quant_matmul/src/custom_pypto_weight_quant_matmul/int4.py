"""Integers of 4 bits, eight in each int32, the first in the lowest bits."""

import torch
from torch import Tensor


def pack_int4(numbers: Tensor) -> Tensor:
    """Return the int32 numbers that pack integers from -8 to 7.

    Args:
        numbers: [..., K], of any integer dtype; K is a multiple of 8.

    Returns:
        [..., K / 8]. For a weight of [N, K], the op takes its transposed view.

    Raises:
        ValueError: K is no multiple of 8, or a number does not fit.
    """
    if numbers.shape[-1] % 8:
        raise ValueError(f"the last dimension must be a multiple of 8, got {list(numbers.shape)}")
    if numbers.numel() and (numbers.min() < -8 or numbers.max() > 7):
        raise ValueError("the numbers must be from -8 to 7")
    low, high = ((numbers[..., first::2] & 15).to(torch.uint8) for first in (0, 1))
    return (low | high << 4).view(torch.int32)


def unpack_int4(packed: Tensor) -> Tensor:
    """Return the int8 numbers [..., K] of what `pack_int4` returned."""
    shifts = torch.arange(28, -4, -4, device=packed.device, dtype=torch.int32)
    return (packed.unsqueeze(-1) << shifts >> 28).flatten(-2).to(torch.int8)
