"""The work of a call, which the contract of its op counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments, count_bytes, count_flops


@dataclass(frozen=True)
class Work:
    """A step's operations and memory traffic; the slower of the two bounds its time."""

    flop: int = 0
    """Floating-point operations."""

    bytes: int = 0
    """Bytes read from memory and written to it."""


def flops(op: str, *args: Any, **kwargs: Any) -> int:
    """Return the floating-point operations of a call; it may have tensors on meta."""
    return count_flops(contract(op), bind_arguments(contract(op), args, kwargs)) or 0


def moved_bytes(op: str, *args: Any, **kwargs: Any) -> int:
    """Return the bytes that a call must read and write; it may have tensors on meta."""
    return count_bytes(contract(op), bind_arguments(contract(op), args, kwargs)) or 0


def work(op: str, *args: Any, **kwargs: Any) -> Work:
    """Return both."""
    return Work(flops(op, *args, **kwargs), moved_bytes(op, *args, **kwargs))


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return a tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")
