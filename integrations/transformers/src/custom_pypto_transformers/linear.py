"""Products with weights of a model on the ops linear and, for its experts, npu_grouped_matmul."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto import core
from custom_pypto_grouped_matmul.ops import npu_grouped_matmul
from custom_pypto_linear.ops import linear
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

# torch multiplies many rows of 16 bits faster where its products have instructions of bf16.
_WITH_BF16 = ("avx512_bf16", "neon_bf16")


def is_torch_fast() -> bool:
    """Whether torch's products of 16 bits have instructions for it."""
    return core.cpu_isa("linear") in _WITH_BF16


class Linear(nn.Linear):
    """``nn.Linear`` by the op linear."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Compute [*, out_features] from [*, in_features]."""
        if not is_for_op(input, self.weight):
            return super().forward(input)
        result: Tensor = linear(input, self.weight, self.bias)
        return result


def is_for_op(x: Tensor, weight: Tensor) -> bool:
    """Whether the ops multiply such tensors here and now."""
    return (
        _is_plain(x)
        and _is_plain(weight)
        and x.dtype == weight.dtype
        and x.dtype in (torch.bfloat16, torch.float16, torch.float32)
        and not torch.is_autocast_enabled("cpu")
        and forward_ad._current_level < 0
    )


def _is_plain(x: Tensor) -> bool:
    is_dense = x.layout == torch.strided and not x.is_nested
    return is_dense and x.device.type == "cpu" and type(x) in (Tensor, nn.Parameter, FakeTensor)


def multiply_by_experts(
    experts: Any,
    hidden_states: Tensor,
    top_k_index: Tensor,
    top_k_weights: Tensor,
    most_tokens: int | None,
) -> Tensor:
    """Compute what experts make of tokens, each expert's weights read once.

    Args:
        experts: transformers' module.
        hidden_states: [T, H].
        top_k_index: the experts of each token, [T, K].
        top_k_weights: how each counts, [T, K].
        most_tokens: more of them in 16 bits are left to the module's own code; None if none are.

    Returns:
        The weighted sums [T, H].
    """
    tokens, count = top_k_index.shape
    up = experts.gate_up_proj if experts.has_gate else experts.up_proj
    down = experts.down_proj
    has_another_form = experts.has_bias or experts.is_transposed or experts._is_expert_parallel
    # The numbers of rows depend on data, which no graph may.
    is_traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    needs_gradient = torch.is_grad_enabled() and any(
        each.requires_grad for each in (hidden_states, up, down)
    )
    if (
        has_another_form
        or is_traced
        or needs_gradient
        or tokens == 0
        or (most_tokens is not None and tokens > most_tokens and up.dtype != torch.float32)
        or not is_for_op(hidden_states, up)
        or type(hidden_states) is FakeTensor
        or int(top_k_index.max()) >= experts.num_experts
    ):
        others: Tensor = type(experts).forward(experts, hidden_states, top_k_index, top_k_weights)
        return others
    order = top_k_index.flatten().argsort(stable=True)
    rows = top_k_index.flatten().bincount(minlength=experts.num_experts)
    inner = multiply_groups(hidden_states[order // count], up, rows)
    inner = experts._apply_gate(inner) if experts.has_gate else experts.act_fn(inner)
    outputs = multiply_groups(inner, down, rows)
    if experts.has_post_expert_norm:
        outputs = experts.post_expert_norm(outputs)
    # order.argsort() is where each row was.
    weighted = outputs[order.argsort()].view(tokens, count, -1) * top_k_weights.unsqueeze(-1)
    return weighted.sum(1).to(hidden_states.dtype)


def multiply_groups(x: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
    """Multiply groups of rows, each by its expert's weights [N, K]."""
    results: list[Tensor] = npu_grouped_matmul(
        [x],
        [weights.transpose(1, 2)],
        group_list=rows,
        group_list_type=1,
        group_type=0,
        split_item=2,
    )
    return results[0]
