"""Products with weights of a model on the ops linear and, for its experts, npu_grouped_matmul."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from custom_pypto import core
from custom_pypto_grouped_matmul.ops import npu_grouped_matmul
from custom_pypto_linear.ops import linear
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

from .fallback import warn_once
from .parts import Parts
from .quantized import replace_quantized
from .switch import set_class

# torch multiplies many rows of 16 bits faster where its products have instructions of bf16.
_WITH_BF16 = ("avx512_bf16", "neon_bf16")
_MOST_TOKENS = 16
# What transformers gives a module of experts, and its own code reads.
_FLAGS = "has_gate has_bias is_transposed has_post_expert_norm _is_expert_parallel num_experts"


def use_linear(model: nn.Module) -> None:
    """Let the linear layers of a model, and its experts, multiply by the ops of this project.

    On CPUs a step of decoding then reads weights faster than by torch. Call it last: what looks for
    ``nn.Linear`` by its exact class no longer finds it. The model's own code runs on as before on
    other devices, for other dtypes than bfloat16, float16 and float32, for sparse tensors, under
    autocast and in forward-mode derivatives; of experts also under torch.compile, for gradients,
    for many tokens in 16 bits where torch has instructions of bf16, and where they have biases or
    transposed weights.

    Linear layers with weights of int8 or int4, as ``from_pretrained`` gives those of
    compressed-tensors, GPTQ and AWQ, are replaced, with rows of int8 (W8A8) too; what the ops do
    not serve stays, with a warning. Call it before the first forward pass, in which those packages
    dequantise the weights or lay them out for their own kernels. The model can then no longer be
    saved. Weights that change later do so by load_state_dict, optimizers or in-place functions, not
    through ``.data``: steps of latent attention keep a transposed part of kv_b_proj.
    """
    replace_quantized(model, is_torch_fast())
    use = partial(multiply_by_experts, most_tokens=_MOST_TOKENS if is_torch_fast() else None)
    if (difference := _difference_of_experts()) is not None:
        warn_once(difference, "use_linear leaves experts to transformers")
    for module in model.modules():
        if type(module) is nn.Linear:
            set_class(module, Linear)
        elif difference is None and _is_of_experts(module):
            module.forward = partial(use, module)


def is_torch_fast() -> bool:
    """Whether torch's products of 16 bits have instructions for it."""
    return core.cpu_isa("linear") in _WITH_BF16


def _is_of_experts(module: nn.Module) -> bool:
    # A forward of the module's own may be that of offloading.
    has_flags = all(hasattr(module, flag) for flag in _FLAGS.split())
    return has_flags and "forward" not in vars(module)


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


def _difference_of_experts() -> str | None:
    parts, theirs = Parts("transformers.integrations.moe"), "grouped_mm_experts_forward"
    parts.check(theirs, names="self hidden_states top_k_index top_k_weights")
    parts.reads(theirs, f"{_FLAGS} gate_up_proj up_proj down_proj _apply_gate act_fn")
    return parts.difference()
