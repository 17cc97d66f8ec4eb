"""Integers of 4 or 8 bits, several in each int32, the first in the lowest bits."""

import torch
from torch import Tensor

_HIGHEST_BITS = {4: -0x77777778, 8: -0x7F7F7F80}
# Where AWQ packs the numbers 0 to 7.
_AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]


def pack_int4(numbers: Tensor) -> Tensor:
    """Return the int32 numbers that pack integers from -8 to 7.

    Args:
        numbers: [..., K], of int8, uint8, int16, int32 or int64; K is a multiple of 8.

    Returns:
        [..., K / 8]. For a weight of [N, K], the op takes its transposed view.

    Raises:
        ValueError: K is no multiple of 8, or a number does not fit.
    """
    if numbers.shape[-1] % 8:
        raise ValueError(f"the last dimension must be a multiple of 8, got {list(numbers.shape)}")
    if numbers.numel() and (int(numbers.min()) < -8 or int(numbers.max()) > 7):
        raise ValueError("the numbers must be from -8 to 7")
    low, high = ((numbers[..., first::2] & 15).to(torch.uint8) for first in (0, 1))
    packed = (low | high << 4).reshape(-1).view(torch.int32)
    return packed.view(*numbers.shape[:-1], numbers.shape[-1] // 8)


def unpack_int4(packed: Tensor) -> Tensor:
    """Return the int8 numbers [..., K] of what `pack_int4` returned."""
    shifts = torch.arange(28, -4, -4, device=packed.device, dtype=torch.int32)
    return (packed.unsqueeze(-1) << shifts >> 28).flatten(-2).to(torch.int8)


def to_signed(words: Tensor, bits: int) -> Tensor:
    """Subtract 8 or 128 from each number of 4 or 8 bits in int32 words.

    Checkpoints store numbers from 0 to 15 or 255. The op takes them less half of that range.
    """
    return words ^ _HIGHEST_BITS[bits]


def unpack_unsigned(words: Tensor, bits: int) -> Tensor:
    """Return the numbers of checkpoints less 8 or 128, int8 [..., K], from int32 words."""
    signed = to_signed(words, bits)
    return unpack_int4(signed) if bits == 4 else signed.contiguous().view(torch.int8)


def unpack_awq(packed: Tensor) -> Tensor:
    """Return the numbers of AWQ's checkpoints less 8, int8 [..., K], from int32 [..., K / 8]."""
    numbers = unpack_unsigned(packed, 4)
    return numbers.view(*packed.shape, 8)[..., _AWQ_ORDER].flatten(-2)
