"""The norm and the rotation of compressed rows, which are no part of npu_compressor."""

from __future__ import annotations

import torch
from torch import Tensor


def norm_and_rotate(
    rows: Tensor,
    weight: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    eps: float = 1e-6,
    interleaved: bool = True,
) -> Tensor:
    """Normalise compressed rows and rotate their last channels, in fp32, rounded once.

    Args:
        rows: [.., D], of npu_compressor or npu_compressor_train.
        weight: [D], of the RMS norm.
        cos, sin: [.., R], of each rotated channel's angle at position `row * cmp_ratio`.
        eps: added to the mean square of a row.
        interleaved: channels 2i and 2i + 1 are a pair, as in DeepSeek-V4; else i and R / 2 + i.

    Returns:
        The rows, [.., D], in their dtype; their last R channels are rotated.
    """
    wide = torch.promote_types(rows.dtype, torch.float32)
    size, plain = rows.shape[-1], rows.shape[-1] - cos.shape[-1]
    normed = torch.nn.functional.rms_norm(rows.to(wide), (size,), weight.to(wide), eps)
    channels = normed[..., plain:]
    pairs = cos.shape[-1] // 2
    sizes, axis = ((pairs, 2), -1) if interleaved else ((2, pairs), -2)
    first, second = channels.view(*channels.shape[:-1], *sizes).unbind(axis)
    turned = torch.stack((-second, first), axis).flatten(-2)
    return torch.cat((normed[..., :plain], channels * cos + turned * sin), -1).to(rows.dtype)
