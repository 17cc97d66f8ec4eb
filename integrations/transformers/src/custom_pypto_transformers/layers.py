"""The layers of a model that use_linear lets multiply by the ops."""

from __future__ import annotations

from functools import partial

from torch import nn

from .fallback import warn_once
from .heads import GROUPED, GroupedLinear, difference_of_grouped
from .linear import Linear, is_torch_fast, multiply_by_experts
from .parts import Parts
from .quantized import replace_quantized
from .switch import set_class

# More in 16 bits are left to torch where its products have instructions of bf16.
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
        elif type(module).__name__ == GROUPED and "forward" not in vars(module):
            if (changed := difference_of_grouped()) is None:
                set_class(module, GroupedLinear)
            else:
                warn_once(changed, f"use_linear leaves {GROUPED} to transformers")
        elif difference is None and _is_of_experts(module):
            module.forward = partial(use, module)


def _is_of_experts(module: nn.Module) -> bool:
    # A forward of the module's own may be that of offloading.
    has_flags = all(hasattr(module, flag) for flag in _FLAGS.split())
    return has_flags and "forward" not in vars(module)


def _difference_of_experts() -> str | None:
    parts, theirs = Parts("transformers.integrations.moe"), "grouped_mm_experts_forward"
    parts.check(theirs, names="self hidden_states top_k_index top_k_weights")
    parts.reads(theirs, f"{_FLAGS} gate_up_proj up_proj down_proj _apply_gate act_fn")
    return parts.difference()
