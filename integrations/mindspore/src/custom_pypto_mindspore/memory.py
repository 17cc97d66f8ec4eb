"""The memory of a tensor, passed between MindSpore and torch by DLPack: never a copy."""

from __future__ import annotations

from collections.abc import Callable

import mindspore
import torch
from custom_pypto_contract import dtypes
from mindspore.utils.dlpack import from_dlpack, to_dlpack

# The dtypes that MindSpore's DLPack knows, by their names in both frameworks.
DTYPES = (
    *(each for each in dtypes.DTYPES if each not in ("float8_e4m3fn", "bool")),
    *("uint16", "uint32", "uint64"),
)
# MindSpore writes some dtypes in another way than torch, such as Float8E4M3FN.
_NAMES = {str(getattr(mindspore, each, None)): each for each in dtypes.DTYPES}


def to_torch(tensor: mindspore.Tensor, what: Callable[[], str]) -> torch.Tensor:
    """Return the same memory as a torch tensor, which keeps it alive.

    MindSpore runs ops asynchronously: `to_dlpack` waits for those that were called before.

    Raises:
        TypeError: DLPack cannot express the dtype; the text begins with `what()`.
    """
    _check_dtype(dtype_name(tensor.dtype), what)
    # This function takes a capsule; MindSpore's tensors have no `__dlpack__`.
    return torch.utils.dlpack.from_dlpack(to_dlpack(tensor))


def to_mindspore(tensor: torch.Tensor, what: Callable[[], str]) -> mindspore.Tensor:
    """Return the same memory as a MindSpore tensor, which keeps it alive.

    Raises:
        TypeError: DLPack cannot express the dtype; the text begins with `what()`.
    """
    _check_dtype(str(tensor.dtype).removeprefix("torch."), what)
    return from_dlpack(tensor.detach().__dlpack__())


def dtype_name(dtype: mindspore.Type) -> str:
    """Return torch's name of a dtype of MindSpore."""
    return _NAMES.get(str(dtype), str(dtype).lower())


def _check_dtype(name: str, what: Callable[[], str]) -> None:
    if name not in DTYPES:
        raise TypeError(
            f"{what()} is of dtype {name}, whose memory MindSpore cannot share by DLPack; it can"
            f" share {', '.join(DTYPES)}"
        )
