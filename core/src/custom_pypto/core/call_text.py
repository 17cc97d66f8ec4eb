"""The arguments of a call as text: shapes and dtypes of tensors, values of scalars."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto_discovery.printable import escape, shorten

PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
"""torch's own types of tensors. Others are subclasses of other packages."""


def name_dtype(dtype: torch.dtype) -> str:
    """Return the name of a dtype as contracts and kernels write it."""
    return str(dtype).removeprefix("torch.")


def describe_argument(value: Any) -> str:
    """Return a tensor as ``float16[2, 8]``, with what is unusual of it; other values as Python."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_argument, value))}]"
    if not isinstance(value, torch.Tensor):
        return escape(shorten(repr(value)))
    kind = "" if type(value) in PLAIN_TENSORS else f"{type(value).__name__} "
    text = f"{kind}{name_dtype(value.dtype)}{[*value.shape]}"
    # Sparse tensors have no strides. A fake tensor's may be symbols, and a test would guard them.
    if not kind and value.layout is torch.strided and not value.is_contiguous():
        text += f" with strides {[*value.stride()]}"
    return text if value.device.type == "cpu" else f"{text} on {value.device}"
