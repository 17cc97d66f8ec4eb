"""The fakes that ops.toml cannot give: results like optional arguments, and of no tensor at all."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto.core.contracts.evaluation import Evaluation
from torch import Tensor

from .ops import METADATA_SIZE


def _checked(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name; refuses what the kernels refuse without reading values."""
    given = bind_arguments(contract(op), args, kwargs)
    Evaluation(contract(op), given).run_checks()
    return given


def gradients(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """npu_sparse_flash_mla_grad: a gradient of each argument, [0] of what is None."""
    given = _checked("npu_sparse_flash_mla_grad", args, kwargs)
    q: Tensor = given["q"]

    def like(argument: Tensor | None, absent: torch.dtype) -> Tensor:
        if argument is None:
            return q.new_empty(0, dtype=absent)
        return argument.new_empty(argument.shape)

    def mean(indices: Tensor | None) -> Tensor:
        return q.new_empty(0 if indices is None else indices.shape, dtype=torch.float32)

    return (
        like(q, q.dtype),
        like(given["ori_kv"], q.dtype),
        like(given["cmp_kv"], q.dtype),
        like(given["sinks"], torch.float32),
        mean(given["ori_sparse_indices"]),
        mean(given["cmp_sparse_indices"]),
    )


def metadata(*args: Any, **kwargs: Any) -> Tensor:
    """npu_sparse_flash_mla_metadata, on the device of its tensors, else on an NPU if any."""
    given = _checked("npu_sparse_flash_mla_metadata", args, kwargs)
    tensors = (each for each in given.values() if isinstance(each, Tensor))
    device = next((each.device for each in tensors), None) or default_device()
    return torch.empty(METADATA_SIZE, dtype=torch.int32, device=device)


def default_device() -> torch.device:
    """Where metadata of no tensor is: on the current NPU if there is one, else on the CPU."""
    has_npu = hasattr(torch, "npu") and torch.npu.is_available()
    return torch.device("npu", torch.npu.current_device()) if has_npu else torch.device("cpu")


def metadata_of_no_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """npu_sparse_flash_mla_metadata without a tensor that says its device."""
    given = bind_arguments(contract("npu_sparse_flash_mla_metadata"), args, kwargs)
    # CANN takes an empty tensor for None.
    given["cmp_topk_length"] = torch.empty(0, dtype=torch.int32, device=default_device())
    made: Tensor = torch.ops.custom_pypto.npu_sparse_flash_mla_metadata(
        *[given.pop(name) for name in ("num_heads_q", "num_heads_kv", "head_dim")], **given
    )
    return made
