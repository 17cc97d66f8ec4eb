"""The fallback: transformers' own attention, for calls that the ops do not support."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from custom_pypto import core
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from transformers import AttentionInterface

from .key_ranges import KeyRanges

_warned_reasons: set[str] = set()


MASK_REASON = (
    "the mask is not causal with padding at the ends only (packed sequences, a mask of your own, or"
    " zeros between ones)"
)
# Of products with weights.
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_WITH_BF16, _WITH_TILES = ("avx512_bf16", "amx_bf16", "neon_bf16"), "amx_bf16"
_ATTENTION = "attn_implementation='custom_pypto' runs transformers' own attention, which is slower"


def warn_once(reason: str, consequence: str = _ATTENTION) -> None:
    """Warn, once per process and reason, that transformers' own attention runs."""
    # A warning would break the graph of torch.compile.
    if torch.compiler.is_compiling() or reason in _warned_reasons:
        return
    _warned_reasons.add(reason)
    warnings.warn(f"{consequence}: {reason}", stacklevel=2)


def is_torch_fast(dtype: torch.dtype) -> bool:
    """Whether many rows take less time by torch: it has instructions, and the ops have no tiles."""
    isa = core.cpu_isa("linear")
    has_tiles = isa == _WITH_TILES and dtype == torch.bfloat16
    return isa in _WITH_BF16 and dtype != torch.float32 and not has_tiles


def wants_weights(module: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call of an attention layer asks for its weights."""
    asked = getattr(module.config, "output_attentions", False)
    return bool(kwargs.get("output_attentions", asked))


def refusal_of_call(want_weights: bool, mask: KeyRanges | Tensor, dropout: float) -> str | None:
    """Why the ops do not apply to a call of an attention layer; None if they do."""
    if want_weights:
        return "output_attentions needs the attention weights, which the ops do not return"
    if not isinstance(mask, KeyRanges):
        return MASK_REASON
    if dropout > 0:
        return f"attention_dropout is {dropout}, and the ops have none"
    return None


def needs_gradients(*tensors: Tensor) -> bool:
    """Whether autograd records an op on these tensors."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def is_for_product(x: Tensor, weight: Tensor) -> bool:
    """Whether the ops multiply such tensors here and now."""
    return (
        _is_plain(x)
        and _is_plain(weight)
        and x.dtype == weight.dtype
        and x.dtype in DTYPES
        and not torch.is_autocast_enabled("cpu")
        and forward_ad._current_level < 0
        and not torch._C._are_functorch_transforms_active()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    )


def _is_plain(x: Tensor) -> bool:
    is_tensor = type(x) in (Tensor, nn.Parameter, FakeTensor)
    return is_tensor and x.layout == torch.strided and not x.is_nested and x.device.type == "cpu"


def has_hooks(module: nn.Module) -> bool:
    """Whether anything runs beside the module's own forward or backward pass."""
    everywhere = nn.modules.module
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or everywhere._global_forward_hooks
        or everywhere._global_forward_pre_hooks
        or everywhere._global_backward_hooks
        or everywhere._global_backward_pre_hooks
        # accelerate replaces it.
        or "forward" in vars(module)
    )


# What computes the attention of other classes in models that are served.
own_attention: dict[type[Any], Callable[..., tuple[Tensor, Tensor | None]]] = {}


def selection_mask(indices: Tensor, keys: int) -> Tensor:
    """Return booleans [B, 1, S, keys], True at the positions [B, S, K]; -1 is none."""
    # The -1 select an extra column.
    target = torch.where(indices < 0, keys, indices.long())
    selected = target.new_zeros((*target.shape[:2], keys + 1), dtype=torch.bool)
    return selected.scatter_(-1, target, True)[:, None, :, :keys]


def expanded_attention(
    module: Any,
    query: Tensor,
    latents: Tensor,
    ropes: Tensor,
    mask: KeyRanges | Tensor,
    indices: Tensor | None,
    *,
    want_weights: bool,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as transformers' own class does: expand the cache and mask the products.

    Args:
        module: a LatentAttention.
        query: [B, N, S, P + R].
        latents, ropes: [B, 1, T, L] and [B, 1, T, R].
        mask: KeyRanges, or a mask [B, 1, S, T].
        indices: [B, S, K], the selected positions, -1 for none; None where all are.
        want_weights: whether to return the attention weights, which sdpa does not compute.

    Returns:
        [B, S, N, V] and the weights [B, N, S, T] or None.
    """
    key, value = module.original.expand_kv(module, latents, ropes)
    keys = key.shape[2]
    if isinstance(mask, KeyRanges):
        mask = mask.dense(query.device)
    if indices is not None:
        selected = selection_mask(indices, keys)
        if mask.dtype == torch.bool:
            mask = mask & selected
        else:
            mask = mask.masked_fill(~selected, torch.finfo(query.dtype).min)
    # sdpa has no sinks.
    if not want_weights and "s_aux" not in kwargs:
        attention = AttentionInterface()["sdpa"]
    else:
        if mask.dtype == torch.bool:
            mask = query.new_zeros(()).where(mask, torch.finfo(query.dtype).min)
        attention = sys.modules[module.original.__module__].eager_attention_forward
    out, weights = attention(module, query, key, value, mask, **kwargs)
    return out, weights
