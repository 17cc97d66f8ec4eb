"""Products with weights of a model, those of its experts too, on the op linear."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto_linear.ops import linear
from torch import Tensor, nn
from transformers import PreTrainedModel

from .fallback import warn_once
from .parts import Parts
from .support import NAME
from .switch import set_class

_MODULE = "transformers.integrations.moe"
_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def use_linear(model: nn.Module) -> None:
    """Let the linear layers of a model, and the experts of transformers' models, use the op linear.

    On CPUs a step of decoding then reads weights at the speed of memory. Some calls run as before:
    on other devices, of other dtypes than bfloat16, float16 and float32, under autocast, with
    quantized weights, of subclasses of ``nn.Linear``, and of experts under torch.compile.
    """
    for module in model.modules():
        if type(module) is nn.Linear:
            set_class(module, Linear)
    if _difference is not None:
        warn_once(_difference, "use_linear leaves experts to transformers")
    elif isinstance(model, PreTrainedModel) and model._can_set_experts_implementation():
        model.set_experts_implementation(NAME)


class Linear(nn.Linear):
    """``nn.Linear`` by the op linear."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Compute [*, out_features] from [*, in_features]."""
        if not _is_for_op(input, self.weight):
            return super().forward(input)
        result: Tensor = linear(input, self.weight, self.bias)
        return result


def _is_for_op(rows: Tensor, weight: Tensor) -> bool:
    return (
        rows.device.type == weight.device.type == "cpu"
        and rows.dtype == weight.dtype
        and rows.dtype in _DTYPES
        and type(weight) in (nn.Parameter, Tensor)
        and not torch.is_autocast_enabled("cpu")
    )


def multiply_by_experts(
    self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """Compute what experts make of tokens, each expert's weights read once.

    Args:
        self: transformers' module of experts.
        hidden_states: [T, H].
        top_k_index: the experts of each token, [T, K].
        top_k_weights: how each counts, [T, K].

    Returns:
        The weighted sums [T, H].
    """
    first = self.gate_up_proj if self.has_gate else self.up_proj
    has_another_form = self.has_bias or self.is_transposed or self._is_expert_parallel
    # Which experts there are depends on the data, so torch.compile cannot trace the loop.
    if has_another_form or torch.compiler.is_compiling() or not _is_for_op(hidden_states, first):
        others: Tensor = _of_transformers(self, hidden_states, top_k_index, top_k_weights)
        return others
    tokens, count = top_k_index.shape
    order = top_k_index.flatten().argsort(stable=True)
    rows_of_expert = top_k_index.flatten().bincount(minlength=self.num_experts).tolist()
    results = []
    activate = self._apply_gate if self.has_gate else self.act_fn
    for expert, rows in enumerate(torch.split(hidden_states[order // count], rows_of_expert)):
        if len(rows):
            inner = activate(linear(rows, first[expert]))
            results.append(linear(inner, self.down_proj[expert]))
    found = torch.cat(results) if results else hidden_states.new_empty(0, hidden_states.shape[-1])
    if self.has_post_expert_norm:
        found = self.post_expert_norm(found)
    # order.argsort() is where each row was.
    weighted = found[order.argsort()].view(tokens, count, -1) * top_k_weights.unsqueeze(-1)
    return weighted.sum(1).to(hidden_states.dtype)


def _difference_of_experts() -> str | None:
    parts, theirs = Parts(_MODULE), "grouped_mm_experts_forward"
    parts.check(theirs, like=multiply_by_experts)
    names = "has_gate has_bias is_transposed _is_expert_parallel has_post_expert_norm num_experts"
    parts.reads(theirs, f"{names} gate_up_proj up_proj down_proj _apply_gate act_fn")
    parts.check("ALL_EXPERTS_FUNCTIONS.register", 2)
    model = "transformers.modeling_utils.PreTrainedModel"
    parts.check(f"{model}._can_set_experts_implementation")
    parts.check(f"{model}.set_experts_implementation", 2)
    return parts.difference()


_difference = _difference_of_experts()
if _difference is None:
    _of_transformers = Parts(_MODULE).find("grouped_mm_experts_forward")
    Parts(_MODULE).find("ALL_EXPERTS_FUNCTIONS").register(NAME, multiply_by_experts)
