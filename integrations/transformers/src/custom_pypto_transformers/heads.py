"""Products of the rows of each head with its own part of a weight, [N, T, K] by [N, M, K].

torch.bmm copies such a part in every call, and is slow in 16 bits on CPUs without bf16.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from .linear import Linear, is_for_op, is_torch_fast, multiply_groups
from .parts import Parts

# The class whose weight has a part for each group of heads.
GROUPED = "DeepseekV4GroupedLinear"

# More rows of a head take torch less time where its products have instructions of bf16.
_MOST_ROWS = 4
# {kv_b_proj: (of which weight, its part that makes latents [N, L, P])}
_transposed: WeakKeyDictionary[nn.Module, tuple[tuple[int, int], Tensor]] = WeakKeyDictionary()


class GroupedLinear(Linear):
    """transformers' linear layer of groups, by npu_grouped_matmul."""

    n_groups: int

    def forward(self, x: Tensor) -> Tensor:
        """Compute [*, G, N / G] from [*, G, K]."""
        rows = x.reshape(-1, *x.shape[-2:]).transpose(0, 1)
        parts = self.weight.view(self.n_groups, -1, x.shape[-1])
        return to_values(self, rows, parts).transpose(0, 1).reshape(*x.shape[:-1], -1)


def difference_of_grouped() -> str | None:
    """Say in one sentence what transformers changed of that class; None if nothing."""
    parts = Parts("transformers.models.deepseek_v4.modeling_deepseek_v4")
    parts.check(f"{GROUPED}.forward", like=GroupedLinear.forward)
    parts.reads(f"{GROUPED}.forward", "weight view n_groups transpose bmm reshape")
    return parts.difference()


def to_latents(projection: nn.Linear, rows: Tensor, part: Tensor) -> Tensor:
    """Multiply rows [N, T, P] by the part [N, P, L] of the projection's weight."""
    if not _is_for_op(projection, rows):
        return torch.bmm(rows, part)
    return _multiply(rows, _transpose(projection, part))


def to_values(projection: nn.Linear, rows: Tensor, part: Tensor) -> Tensor:
    """Multiply rows [N, T, L] by the part [N, V, L] of the projection's weight, transposed."""
    if not _is_for_op(projection, rows):
        return torch.bmm(rows, part.transpose(1, 2))
    return _multiply(rows, part)


def _is_for_op(projection: nn.Linear, rows: Tensor) -> bool:
    weight = projection.weight
    return (
        isinstance(projection, Linear)
        and not torch.compiler.is_compiling()
        and type(rows) is Tensor
        and rows.dtype != torch.float32
        and is_for_op(rows, weight)
        and not (torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad))
        and (rows.shape[1] <= _MOST_ROWS or not is_torch_fast())
    )


def _multiply(rows: Tensor, weights: Tensor) -> Tensor:
    heads, count, _ = rows.shape
    counts = torch.full((heads,), count, device=rows.device)
    return multiply_groups(rows.flatten(0, 1), weights, counts).view(heads, count, -1)


def _transpose(projection: nn.Linear, part: Tensor) -> Tensor:
    """Return the part as [N, L, P], copied once for each state of the weight."""
    weight = projection.weight
    # Inference tensors have no version.
    state = None if weight.is_inference() else (weight.data_ptr(), weight._version)
    kept = _transposed.get(projection)
    if kept is not None and kept[0] == state:
        return kept[1]
    copied = part.transpose(1, 2).contiguous()
    if state is not None:
        _transposed[projection] = state, copied
    return copied
