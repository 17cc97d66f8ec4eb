"""Attention to the selected keys of a latent cache, without expanding it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .expanded_keys import attend_expanded
from .fallback import (
    expanded_attention,
    has_hooks,
    needs_gradients,
    own_attention,
    refusal_of_call,
    wants_weights,
    warn_once,
)
from .indexer_loss import loss_of
from .key_ranges import KeyRanges
from .linear import Linear, to_latents, to_values
from .pages import Pages, as_pages
from .rows import attend_to_rows
from .support import NAME, SERVED, refusal_of, refusal_of_autocast

# Query tokens per call of the op; bounds the memory beside the caches.
_TOKENS_AT_ONCE = 256


class LatentAttention:
    """Mixin for a transformers class with `expand_kv`: passes the latent cache on unexpanded."""

    # transformers' own class; set by a subclass of both.
    original: type[Any]
    config: Any

    def expand_kv(self, kv_nope: Tensor, k_rot: Tensor) -> tuple[Tensor, Tensor]:
        """Return [B, 1, T, L] and [B, 1, T, R] unchanged for `attend`, else expanded."""
        if self.config._attn_implementation == NAME:
            return kv_nope, k_rot
        key, value = self.original.expand_kv(self, kv_nope, k_rot)
        return key, value


class PooledAttention(LatentAttention):
    """Mixin for transformers' class: passes latents and selection on, without a mask."""

    def build_attention_mask_from_topk(
        self, topk_indices: Tensor, query_states: Tensor, kv_length: int
    ) -> Tensor:
        """Return the selection [B, S, K] unchanged for `attend`, else transformers' mask."""
        if self.config._attn_implementation == NAME:
            return topk_indices
        inputs = topk_indices, query_states, kv_length
        mask: Tensor = self.original.build_attention_mask_from_topk(self, *inputs)
        return mask


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: KeyRanges | Tensor,
    *,
    scaling: float,
    dropout: float = 0.0,
    indices: Tensor | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as the function of attn_implementation='custom_pypto'.

    Args:
        module: the attention layer.
        query: [B, N, S, P + R].
        key, value: the latent cache of a LatentAttention, [B, 1, T, L] and [B, 1, T, R].
        attention_mask: what `make_key_ranges` returned, or the caller's own [B, 1, S, T].
        scaling: the factor of the products before the softmax.
        indices: [B, S, K], int32, the selected positions of a row; -1 for none. A
            PooledAttention passes them as its mask; a layer with a window has none.
        s_aux: [N], the logits of sinks; None for none.

    Returns:
        [B, S, N, V], and the attention weights [B, N, S, T] with output_attentions, else None.

    Raises:
        ValueError: the module is of a class that is not served.
    """
    if (own := own_attention.get(type(module))) is not None:
        others = {**kwargs, "scaling": scaling, "dropout": dropout}
        return own(module, query, key, value, attention_mask, **others)
    if not isinstance(module, LatentAttention):
        raise ValueError(
            f"attn_implementation='custom_pypto' does not serve this {type(module).__name__}. It"
            f" serves {SERVED}"
        )
    if isinstance(attention_mask, Tensor) and isinstance(module, PooledAttention):
        keys, tokens = key.shape[2], query.shape[2]
        indices, attention_mask = attention_mask, KeyRanges(tokens, keys, keys - tokens)
    elif indices is None and isinstance(attention_mask, KeyRanges) and attention_mask.window:
        indices = attention_mask.window_positions(query.device).int()
        indices = indices.expand(len(query), -1, -1)
    want_weights = wants_weights(module, kwargs)
    tensors = query, key, value
    reason = refusal_of_call(want_weights, attention_mask, dropout) or _why_not(
        module, tensors, indices, s_aux
    )
    if reason is None:
        assert indices is not None
        return _attend_in_chunks(module, *tensors, indices, scaling, s_aux), None
    warn_once(reason)
    if s_aux is not None:
        kwargs["s_aux"] = s_aux
    return expanded_attention(
        module,
        *tensors,
        attention_mask,
        indices,
        want_weights=want_weights,
        scaling=scaling,
        dropout=dropout,
        **kwargs,
    )


def _why_not(
    module: Any,
    tensors: tuple[Tensor, Tensor, Tensor],
    indices: Tensor | None,
    sinks: Tensor | None,
) -> str | None:
    """Why the ops do not apply to these weights and tensors; None if they do."""
    query, projection = tensors[0], module.kv_b_proj
    if indices is None:
        return "a layer attends to all keys"
    if not _is_plain_linear(projection):
        return (
            f"the weight of kv_b_proj is not that of a plain Linear ({type(projection).__name__}:"
            " quantised, sharded, offloaded, adapted or with hooks), and the ops need the weight"
            " itself"
        )
    if query.device.type != "cpu" and needs_gradients(*tensors, projection.weight):
        return (
            "gradients are enabled, and on an NPU the ops have none for these calls; call the model"
            " under torch.no_grad() or torch.inference_mode() if you do not need them"
        )
    # The dtypes may be equal here and differ after the product with kv_b_proj.
    if (reason := refusal_of_autocast(query.device)) is not None:
        return reason
    dtypes = {tensor.dtype for tensor in (*tensors, projection.weight)}
    if len(dtypes) > 1:
        return f"the dtypes differ: {', '.join(sorted(map(str, dtypes)))}"
    # Not from the tensors: their sizes may be symbols of torch.compile.
    call, sizes = "rows", [module.num_heads, module.kv_lora_rank]
    if module.qk_rope_head_dim:
        call, sizes = "attention", [*sizes, module.qk_rope_head_dim, sinks is not None]
    return refusal_of(call, query.device, query.dtype, *sizes)


def _is_plain_linear(module: nn.Module) -> bool:
    """Whether the module only multiplies by its weight, an ordinary tensor."""
    return (
        type(module) in (nn.Linear, Linear)
        and type(module.weight) is nn.Parameter
        and module.bias is None
        and not has_hooks(module)
    )


def _attend_in_chunks(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    indices: Tensor,
    scale: float,
    sinks: Tensor | None,
) -> Tensor:
    cache = as_pages(key, value) if value.shape[-1] else key[:, 0]
    # Under torch.compile a loop would specialise the number of tokens.
    if torch.compiler.is_compiling() or query.shape[2] == 1:
        return _attend_absorbed(module, query, cache, indices, scale, sinks)
    queries = torch.split(query, _TOKENS_AT_ONCE, 2)
    chunks = torch.split(indices, _TOKENS_AT_ONCE, 1)
    outs: dict[int, Tensor] = {}
    # Training has its gradients from the op.
    is_plain = type(query) is Tensor and query.device.type == "cpu" and not torch.is_grad_enabled()
    is_traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if is_plain and not is_traced and sinks is None:
        outs = attend_expanded(module, query, key[:, 0], value[:, 0], chunks, scale)
    for number, (some, selected) in enumerate(zip(queries, chunks, strict=True)):
        if number not in outs:
            outs[number] = _attend_absorbed(module, some, cache, selected, scale, sinks)
    return torch.cat([outs[number] for number in range(len(chunks))], 1)


def _attend_absorbed(
    module: Any,
    query: Tensor,
    cache: Pages | Tensor,
    indices: Tensor,
    scale: float,
    sinks: Tensor | None,
) -> Tensor:
    """Compute [B, S, N, V]; query and output absorb kv_b_proj, so that no key is expanded.

    The cache is pages, or the latents [B, T, L] of keys that are not rotated.
    """
    batch, heads, tokens, _ = query.shape
    nope, latents = module.qk_nope_head_dim, cache[0] if isinstance(cache, Pages) else cache
    latent = latents.shape[-1]
    projection = module.kv_b_proj
    weight = projection.weight.view(heads, -1, latent)
    query = query.transpose(0, 1).reshape(heads, batch * tokens, -1)
    queries = _tokens_first(to_latents(projection, query[..., :nope], weight[:, :nope]), batch)
    loss = loss_of(getattr(module, "indexer", None))
    # A backward pass that does not get it computes it again.
    want_lse = loss is not None or needs_gradients(queries, latents)
    if isinstance(cache, Pages):
        ropes = _tokens_first(query[..., nope:], batch)
        out, lse = torch.ops.custom_pypto.npu_sparse_flash_attention(
            queries,
            ropes,
            cache.latents,
            cache.ropes,
            indices[:, :, None],
            cache.table,
            cache.lengths,
            scale=scale,
            # The selection is causal already.
            sparse_mode=0,
            return_softmax_lse=want_lse or sinks is not None,
        )
        if sinks is not None:
            # A sink takes weight from all keys alike.
            share = torch.sigmoid(lse - sinks)[..., None]
            out = (out.float() * share).to(out.dtype)
    else:
        out, lse = attend_to_rows(
            queries, cache, scale, indices=indices, sinks=sinks, want_lse=want_lse
        )
    if loss is not None:
        if isinstance(cache, Pages):
            queries = torch.cat([queries, ropes], -1)
            keys = torch.cat([cache.latents, cache.ropes], -1)
        else:
            keys = cache[:, :, None]
        loss.add(queries, keys, indices, lse, scale)
    out = out.view(batch * tokens, heads, latent).transpose(0, 1)
    return _tokens_first(to_values(projection, out, weight[:, nope:]), batch)


def _tokens_first(rows: Tensor, batch: int) -> Tensor:
    """Transpose [N, B * S, D] to [B, S, N, D]."""
    heads, tokens, size = rows.shape
    return rows.transpose(0, 1).reshape(batch, tokens // batch, heads, size)
