"""Products with weights of a model: on linear; of its experts and heads on npu_grouped_matmul."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from custom_pypto_grouped_matmul.ops import npu_grouped_matmul
from custom_pypto_linear.ops import linear
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from .fallback import is_for_product, is_torch_fast, needs_gradients, warn_once
from .parts import Parts
from .quantized import replace_quantized
from .switch import set_class

# Where torch multiplies more rows faster.
_MOST_TOKENS = 16
_MOST_ROWS = 4  # of a head
# What transformers gives a module of experts, and its own code reads.
_FLAGS = "has_gate has_bias is_transposed has_post_expert_norm _is_expert_parallel num_experts"
_GROUPED = "DeepseekV4GroupedLinear"
# Of each kv_b_proj: its weight's state, a row of each head, and the part that makes latents.
_Kept = tuple[tuple[int, int, int], Tensor, Tensor]
_transposed: WeakKeyDictionary[nn.Module, _Kept] = WeakKeyDictionary()


def use_linear(model: nn.Module) -> None:
    """Let the linear layers of a model, and its experts, multiply by the ops of this project.

    On CPUs a step of decoding then reads weights faster than by torch. Call it last: what looks for
    ``nn.Linear`` by its exact class no longer finds it, and what replaces ``F.linear`` does not see
    these layers. The model's own code runs on as before on other devices, for other dtypes than
    bfloat16, float16 and float32, for sparse tensors, under autocast, in forward-mode derivatives,
    in transforms of ``torch.func`` and in tracing; of experts also under torch.compile, for
    gradients, for many tokens where torch multiplies them faster, and where they have biases or
    transposed weights.

    Linear layers with weights of int8 or int4, as ``from_pretrained`` gives those of
    compressed-tensors, GPTQ and AWQ, are replaced, with rows of int8 (W8A8) too; what the ops do
    not serve stays, with a warning. Call it before the first forward pass, in which those packages
    dequantise the weights or lay them out for their own kernels. The model can then no longer be
    saved. Of a kv_b_proj, later changes through ``.data`` are seen if they change the first row of
    a head.
    """
    replace_quantized(model)
    if (difference := _difference_of_experts()) is not None:
        warn_once(difference, "use_linear leaves experts to transformers")
    for module in model.modules():
        if type(module) is nn.Linear:
            set_class(module, Linear)
        elif type(module).__name__ == _GROUPED and "forward" not in vars(module):
            if (changed := _difference_of_grouped()) is None:
                set_class(module, GroupedLinear)
            else:
                warn_once(changed, f"use_linear leaves {_GROUPED} to transformers")
        elif difference is None and _is_of_experts(module):
            module.forward = _Forward(module)
            config = getattr(getattr(model, "config", None), "quantization_config", None)
            if getattr(config, "quant_method", None) in ("compressed-tensors", "gptq", "awq"):
                reason = "transformers dequantises them as it loads, and loads none of GPTQ and AWQ"
                warn_once(reason, "experts of this quantised model have no integers")


def _is_of_experts(module: nn.Module) -> bool:
    # A forward of the module's own may be that of offloading.
    return all(hasattr(module, flag) for flag in _FLAGS.split()) and "forward" not in vars(module)


class Linear(nn.Linear):
    """``nn.Linear`` by the op linear."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Compute [*, out_features] from [*, in_features]."""
        if not is_for_product(input, self.weight):
            return super().forward(input)
        result: Tensor = linear(input, self.weight, self.bias)
        return result


class GroupedLinear(Linear):
    """transformers' linear layer of groups, by npu_grouped_matmul."""

    n_groups: int

    def forward(self, x: Tensor) -> Tensor:
        """Compute [*, G, N / G] from [*, G, K]."""
        rows = x.reshape(-1, *x.shape[-2:]).transpose(0, 1)
        parts = self.weight.view(self.n_groups, -1, x.shape[-1])
        return to_values(self, rows, parts).transpose(0, 1).reshape(*x.shape[:-1], parts.shape[1])


class _Forward:
    """The forward of a module of experts; a method of a function could not be unpickled."""

    def __init__(self, experts: nn.Module) -> None:
        self._experts = experts

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return multiply_by_experts(self._experts, *args, **kwargs)

    @property
    def __func__(self) -> Any:
        """The function of a method, for which compressed-tensors looks."""
        return multiply_by_experts


def multiply_by_experts(
    experts: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """Compute what experts make of tokens, each expert's weights read once.

    Args:
        experts: transformers' module.
        hidden_states: [T, H].
        top_k_index: the experts of each token, [T, K].
        top_k_weights: how each counts, [T, K].

    Returns:
        The weighted sums [T, H].
    """
    tokens, count = top_k_index.shape
    up = experts.gate_up_proj if experts.has_gate else experts.up_proj
    down = experts.down_proj
    has_another_form = experts.has_bias or experts.is_transposed or experts._is_expert_parallel
    if (
        has_another_form
        # The numbers of rows depend on data, which no graph may.
        or torch.compiler.is_compiling()
        or needs_gradients(hidden_states, up, down)
        or not is_for_product(hidden_states, up)
        or tokens == 0
        or (tokens > _MOST_TOKENS and is_torch_fast(up.dtype))
        or type(hidden_states) is FakeTensor
        or int(top_k_index.max()) >= experts.num_experts
    ):
        others: Tensor = type(experts).forward(experts, hidden_states, top_k_index, top_k_weights)
        return others
    order = top_k_index.flatten().argsort(stable=True)
    rows = top_k_index.flatten().bincount(minlength=experts.num_experts)
    inner = _multiply_groups(hidden_states[order // count], up, rows)
    inner = experts._apply_gate(inner) if experts.has_gate else experts.act_fn(inner)
    outputs = _multiply_groups(inner, down, rows)
    if experts.has_post_expert_norm:
        outputs = experts.post_expert_norm(outputs)
    # order.argsort() is where each row was.
    weighted = outputs[order.argsort()].view(tokens, count, -1) * top_k_weights.unsqueeze(-1)
    return weighted.sum(1).to(hidden_states.dtype)


def _multiply_groups(x: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
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


def to_latents(projection: nn.Linear, rows: Tensor, part: Tensor) -> Tensor:
    """Multiply rows [N, T, P] by the part [N, P, L] of the projection's weight."""
    if not _takes(projection, rows):
        return torch.bmm(rows, part)
    return _multiply(rows, _transpose(projection, part))


def to_values(projection: nn.Linear, rows: Tensor, part: Tensor) -> Tensor:
    """Multiply rows [N, T, L] by the part [N, V, L] of the projection's weight, transposed."""
    if not _takes(projection, rows):
        return torch.bmm(rows, part.transpose(1, 2))
    return _multiply(rows, part)


def _takes(projection: nn.Linear, rows: Tensor) -> bool:
    weight = projection.weight
    return (
        isinstance(projection, Linear)
        and not torch.compiler.is_compiling()
        and type(rows) is Tensor
        and rows.dtype != torch.float32
        and is_for_product(rows, weight)
        and not needs_gradients(rows, weight)
        and (rows.shape[1] <= _MOST_ROWS or not is_torch_fast(rows.dtype))
    )


def _multiply(rows: Tensor, weights: Tensor) -> Tensor:
    heads, count, _ = rows.shape
    counts = torch.full((heads,), count, device=rows.device)
    results = _multiply_groups(rows.flatten(0, 1), weights, counts)
    return results.view(heads, count, weights.shape[1])


def _transpose(projection: nn.Linear, part: Tensor) -> Tensor:
    """Return the part as [N, L, P], copied once for each state of the weight."""
    weight = projection.weight
    if weight.is_inference():  # it has no version
        return part.transpose(1, 2).contiguous()
    state, rows = (id(weight), weight.data_ptr(), weight._version), part[:, 0]
    kept = _transposed.get(projection)
    # Fused optimizers and writes to `.data` change no version, and another weight may have the
    # memory of one that is gone. A row of each head is compared, which takes no time beside the
    # product.
    if kept is None or kept[0] != state or not kept[1].equal(rows):
        kept = state, rows.clone(), part.transpose(1, 2).contiguous()
        _transposed[projection] = kept
    return kept[2]


def _difference_of_experts() -> str | None:
    parts, theirs = Parts("transformers.integrations.moe"), "grouped_mm_experts_forward"
    parts.check(theirs, names="self hidden_states top_k_index top_k_weights")
    parts.reads(theirs, f"{_FLAGS} gate_up_proj up_proj down_proj _apply_gate act_fn")
    return parts.difference()


def _difference_of_grouped() -> str | None:
    parts = Parts("transformers.models.deepseek_v4.modeling_deepseek_v4")
    parts.check(f"{_GROUPED}.forward", like=GroupedLinear.forward)
    parts.reads(f"{_GROUPED}.forward", "weight view n_groups transpose bmm reshape")
    return parts.difference()
