"""The fakes that ops.toml cannot give: results like optional arguments, and of no tensor at all."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from . import ATTENTION_GRAD, METADATA
from .ops import METADATA_SIZE


def gradients(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """npu_sparse_flash_mla_grad: a gradient of each argument, [0] of what is None."""
    given = bind_arguments(contract(ATTENTION_GRAD), args, kwargs)
    q, fp32 = given["q"], torch.float32
    dtypes = {"q": q.dtype, "ori_kv": q.dtype, "cmp_kv": q.dtype, "sinks": fp32}
    dtypes |= {"ori_sparse_indices": fp32, "cmp_sparse_indices": fp32}

    def like(name: str, dtype: torch.dtype) -> Tensor:
        of: Tensor | None = given[name]
        if of is None:
            return torch.empty(0, dtype=dtype, device=q.device)
        return of.new_empty(of.shape, dtype=of.dtype if of.is_floating_point() else dtype)

    return tuple(like(name, dtype) for name, dtype in dtypes.items())


def metadata(*args: Any, **kwargs: Any) -> Tensor:
    """npu_sparse_flash_mla_metadata, on the device of its tensors, else on an NPU if any."""
    given = bind_arguments(contract(METADATA), args, kwargs)
    tensors = {name: each for name, each in given.items() if isinstance(each, Tensor)}
    first = next(iter(tensors), "")
    device = tensors[first].device if tensors else default_device()
    for name, each in tensors.items():
        if each.device != device:
            raise RuntimeError(
                f"{METADATA}: argument '{name}' must be on the device of '{first}' ({device}),"
                f" got {each.device}"
            )
    return torch.empty(METADATA_SIZE, dtype=torch.int32, device=device)


def default_device() -> torch.device:
    """Where metadata of no tensor is: on the current NPU if there is one, else on the CPU."""
    npu: Any = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        return torch.device("cpu")
    return torch.device("npu", npu.current_device())


def metadata_of_no_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """npu_sparse_flash_mla_metadata without a tensor that says its device."""
    # CANN takes an empty tensor for None.
    kwargs["cmp_topk_length"] = torch.empty(0, dtype=torch.int32, device=default_device())
    made: Tensor = torch.ops.custom_pypto.npu_sparse_flash_mla_metadata(*args, **kwargs)
    return made
