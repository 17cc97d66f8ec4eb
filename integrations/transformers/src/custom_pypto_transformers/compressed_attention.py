"""The attention of DeepSeek-V4: a window of tokens, compressed rows of all earlier ones, a sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .fallback import has_hooks, refusal_of_call, wants_weights, warn_once
from .growing_cache import append
from .key_ranges import KeyRanges
from .rows import Compressed, attend_to_rows
from .selection import select_rows
from .support import NAME, refusal_of


class CompressedAttention:
    """Mixin for transformers' class: attends by the ops if the mask is a KeyRanges."""

    # transformers' own class, its rotary embedding, and the names that its forward takes; set by a
    # subclass of both.
    original: type[Any]
    rope: Callable[..., Tensor]
    takes: frozenset[str]

    def forward(
        self: Any,
        hidden_states: Tensor,
        position_embeddings: dict[str, tuple[Tensor, Tensor]],
        position_ids: Tensor,
        attention_mask: KeyRanges | Tensor,
        cache: Any = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the window and to compressed rows.

        Args:
            hidden_states: [B, S, H].
            position_embeddings: cos and sin, [B or 1, S, R / 2], of "main" and "compress".
            position_ids: [B or 1, S].
            attention_mask: KeyRanges, or a mask [B, 1, S, T] for which transformers' code runs.
            cache: the cache that keeps window and rows; None for none.
            past_key_values: the same, as transformers before 5.24 calls it.

        Returns:
            [B, S, H], and the attention weights with output_attentions, else None.
        """
        cache = past_key_values if cache is None else cache
        if self.config._attn_implementation == NAME:
            lengths = None
            if isinstance(attention_mask, KeyRanges) and self.compressor is not None:
                rate = self.compressor.compress_rate
                lengths = _lengths(position_ids, attention_mask, rate, is_kept=cache is not None)
            dropout = self.attention_dropout if self.training else 0.0
            reason = refusal_of_call(wants_weights(self, kwargs), attention_mask, dropout)
            reason = reason or self._why_not(hidden_states, attention_mask, lengths)
            if reason is None:
                taken = hidden_states, position_embeddings, position_ids
                return self._attend(*taken, attention_mask, lengths, cache), None
            warn_once(reason)
            if isinstance(attention_mask, KeyRanges):
                attention_mask = attention_mask.dense(hidden_states.device)
            attention_mask = attention_mask.expand(len(hidden_states), -1, -1, -1)
            if attention_mask.dtype == torch.bool:
                least = torch.finfo(hidden_states.dtype).min
                attention_mask = hidden_states.new_zeros(()).where(attention_mask, least)
        kwargs["cache" if "cache" in self.takes else "past_key_values"] = cache
        inputs = hidden_states, position_embeddings, position_ids, attention_mask
        out, weights = self.original.forward(self, *inputs, **kwargs)
        return out, weights

    def _why_not(
        self: Any, hidden_states: Tensor, ranges: KeyRanges, lengths: Tensor | None
    ) -> str | None:
        """Why the ops do not apply to this layer and these tensors; None if they do."""
        if torch.is_grad_enabled() and (
            hidden_states.requires_grad or any(each.requires_grad for each in self.parameters())
        ):
            return (
                "gradients are enabled, and this attention has none on the ops; call the model"
                " under torch.no_grad() or torch.inference_mode() if you do not need them"
            )
        compressor = self.compressor
        indexer = getattr(compressor, "indexer", None)
        parts = compressor, indexer, getattr(indexer, "scorer", None)
        if any(map(has_hooks, filter(None, parts))):
            return "the compressor is offloaded or has hooks, and the ops need its weights"
        rate = 0
        if compressor is not None:
            if lengths is None:
                return "position_ids do not go on from the tokens in the cache"
            rate = compressor.compress_rate
        device, dtype = hidden_states.device, hidden_states.dtype
        window = None if ranges.first is not None else ranges.window
        count = 0 if indexer is None else indexer.index_topk
        sizes = self.num_heads, self.head_dim, window, rate, count
        reason: str | None = refusal_of("rows", device, dtype, *sizes)
        if reason is None and indexer is not None:
            heads = indexer.scorer.weights_proj.out_features
            reason = refusal_of("selection", device, dtype, heads, indexer.head_dim, count)
        return reason

    def _attend(
        self: Any,
        hidden_states: Tensor,
        position_embeddings: dict[str, tuple[Tensor, Tensor]],
        position_ids: Tensor,
        ranges: KeyRanges,
        lengths: Tensor | None,
        cache: Any,
    ) -> Tensor:
        batch, tokens, _ = hidden_states.shape
        cos, sin = position_embeddings[self.rope_layer_type]
        q_residual = self.q_a_norm(self.q_a_proj(hidden_states))
        query = self.q_b_proj(q_residual).view(batch, tokens, -1, self.head_dim)
        query = self.rope(self.q_b_norm(query), cos, sin, unsqueeze_dim=2)
        near = self.kv_norm(self.kv_proj(hidden_states))[:, None]
        near, layer = self.rope(near, cos, sin), None
        if cache is not None:
            layer = cache.layers[self.layer_idx]
            near = cache.update(near, near, self.layer_idx)[0]
        compressed = None
        if (compressor := self.compressor) is not None:
            assert lengths is not None  # _why_not has refused others
            lengths, rate = lengths.expand(batch), compressor.compress_rate
            rows = compress(compressor, self.rope, hidden_states, layer, "compressor")
            picked = None
            if hasattr(compressor, "indexer"):
                picked = self._select(hidden_states, q_residual, position_ids, lengths, layer)
            elif tokens == 1:
                # As in transformers, a single query sees all rows.
                lengths = torch.full_like(lengths, rows.shape[1] * rate)
            compressed = Compressed(rows, rate, lengths, picked)
        indices = None
        if ranges.first is not None:
            indices = ranges.window_positions(near.device).int()
        out, _ = attend_to_rows(
            query,
            near[:, 0],
            self.scaling,
            indices=indices,
            window=ranges.window,
            compressed=compressed,
            sinks=self.sinks,
        )
        out = self.rope(out, cos, -sin, unsqueeze_dim=2)
        grouped = self.o_a_proj(out.reshape(batch, tokens, self.config.o_groups, -1))
        projected: Tensor = self.o_b_proj(grouped.flatten(2))
        return projected

    def _select(
        self: Any,
        hidden_states: Tensor,
        q_residual: Tensor,
        position_ids: Tensor,
        lengths: Tensor,
        layer: Any,
    ) -> Tensor:
        """Select compressed rows [B, S, K]; -1 for none."""
        indexer = self.compressor.indexer
        rows = compress(indexer, self.rope, hidden_states, layer, "indexer")
        angles = {"position_ids": position_ids, "layer_type": indexer.rope_layer_type}
        cos, sin = indexer.rotary_emb(hidden_states, **angles)
        query = indexer.q_b_proj(q_residual).unflatten(-1, (-1, indexer.head_dim))
        query = self.rope(query, cos, sin, unsqueeze_dim=2)
        # transformers' positive factors do not change the order.
        weights = indexer.scorer.weights_proj(hidden_states).float()
        return select_rows(query, rows, weights, lengths, indexer.compress_rate, indexer.index_topk)


def _lengths(position_ids: Tensor, ranges: KeyRanges, rate: int, *, is_kept: bool) -> Tensor | None:
    """Return the tokens [B] from which the op's mask makes what transformers' makes of positions.

    None if there are none. transformers compresses padding too, but counts from positions. Later
    tokens may see the rows of padding that are kept.
    """
    tokens = position_ids.shape[1]
    index = torch.arange(tokens, device=position_ids.device)
    last = index[-1:]
    if ranges.end is not None and not is_kept:
        # Padding after it may see anything.
        last = (ranges.end - ranges.offset - 1).clamp(0, tokens - 1)
    positions = position_ids.expand(max(len(position_ids), len(last)), -1)
    last = last.expand(len(positions))
    lengths = positions.gather(1, last[:, None])[:, 0] + tokens - last
    seen = (lengths[:, None] - tokens + 1 + index).clamp(min=0) // rate
    is_alike = (seen == (positions + 1) // rate) | (index > last[:, None])
    fits = bool(is_alike.all()) and bool((lengths <= ranges.offset + tokens).all())
    return lengths if fits else None


def compress(
    module: Any, rope: Callable[..., Tensor], hidden_states: Tensor, layer: Any, name: str
) -> Tensor:
    """Compress the windows that new tokens close, and return all rows [B, T, D].

    Args:
        module: a compressor of transformers, or an indexer.
        rope: transformers' rotary embedding.
        hidden_states: [B, S, H], the new tokens.
        layer: the layer's cache, which holds the tokens of the open window and the rows; None for
            none.
        name: of the module's state in the cache.
    """
    values, gates, first = module.kv_proj(hidden_states), module.gate_proj(hidden_states), 0
    rate, size, batch = module.compress_rate, module.head_dim, hidden_states.shape[0]
    if layer is not None:
        values, gates, first = layer.store_compression_weights(name, values, gates)
    windows = values.shape[1] // rate
    if not windows:
        held = None if layer is None else layer.compressed_kv[name]
        kept: Tensor = values.new_zeros((batch, 0, size)) if held is None else held
        return kept
    values = values[:, : windows * rate].view(batch, windows, rate, -1)
    gates = gates[:, : windows * rate].view(batch, windows, rate, -1) + module.position_bias
    if values.shape[-1] > size:
        values, gates = _overlap(values, gates, size, layer, name)
    shares = gates.softmax(2, dtype=torch.float32).to(values.dtype)
    rows = module.kv_norm((values * shares).sum(2))
    positions = (torch.arange(windows, device=rows.device) * rate + first)[None].expand(batch, -1)
    angles = {"position_ids": positions, "layer_type": module.rope_layer_type}
    cos, sin = module.rotary_emb(rows, **angles)
    rows = rope(rows[:, None], cos, sin)[:, 0]
    if layer is not None:
        held = layer.compressed_kv[name]
        rows = append(rows.new_empty(0) if held is None else held, rows)
        layer.compressed_kv[name] = rows
        layer.entry_count[name] += windows
    return rows


def _overlap(
    values: Tensor, gates: Tensor, size: int, layer: Any, name: str
) -> tuple[Tensor, Tensor]:
    """Join the first half of each window before with the second half of each window.

    From [B, W, r, 2 D] to [B, W, 2 r, D].
    """
    before, weights = values[..., :size], gates[..., :size]
    held = None, None
    if layer is not None:
        held = layer.update_overlap_state(name, values, gates, size)
    last = (
        torch.zeros_like(before[:, 0]) if held[0] is None else held[0],
        torch.full_like(weights[:, 0], -torch.inf) if held[1] is None else held[1],
    )
    before = torch.cat([last[0][:, None], before[:, :-1]], 1)
    weights = torch.cat([last[1][:, None], weights[:, :-1]], 1)
    return torch.cat([before, values[..., size:]], 2), torch.cat([weights, gates[..., size:]], 2)
