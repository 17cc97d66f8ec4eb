"""The memory that a tensor's elements take; argument_memory.h has this in C++."""

from __future__ import annotations

import torch

from custom_pypto.core.memory_overlap import ByteRuns


def byte_runs(tensor: torch.Tensor) -> ByteRuns | None:
    """Return the bytes of a tensor with elements; None where symbols leave them open."""
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if any(isinstance(each, torch.SymInt) for each in numbers):
        return None
    return ByteRuns(tensor.shape, tensor.stride(), tensor.element_size())


def expect_memory(op: str, argument: str, tensor: torch.Tensor) -> None:
    """Check that a tensor has strided elements in memory.

    Raises:
        RuntimeError: it is sparse, of another layout, or quantised; or its storage is smaller than
            what its elements need.
    """
    if tensor.layout is not torch.strided:
        raise RuntimeError(
            f"{op}: argument '{argument}' must be a dense tensor; pass its to_dense()"
        )
    if tensor.is_quantized:
        raise RuntimeError(
            f"{op}: argument '{argument}' must not be quantised; pass its dequantize()"
        )
    # Where symbols leave it open, the kernel checks. On meta there is no memory.
    runs = byte_runs(tensor)
    if runs is None or tensor.numel() == 0 or tensor.device.type == "meta":
        return
    needed = tensor.storage_offset() * tensor.element_size() + runs.spans[-1]
    given = tensor.untyped_storage().nbytes()
    if not isinstance(given, torch.SymInt) and given < needed:
        raise RuntimeError(
            f"{op}: argument '{argument}' needs a storage of {needed} bytes, but its storage has"
            f" {given}, as after untyped_storage().resize_(0); resize the storage, or pass another"
            " tensor"
        )
