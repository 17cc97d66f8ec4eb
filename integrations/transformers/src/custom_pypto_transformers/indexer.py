"""The indexer of a sparse attention layer, on npu_lightning_indexer_pto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .fallback import warn_once
from .indexer_loss import loss_of
from .key_ranges import KeyRanges
from .pages import row_pitch
from .support import refusal_of

Rope = Callable[..., tuple[Tensor, Tensor]]


class FusedIndexer:
    """Mixin for a transformers indexer class: selects by the op if the mask is a KeyRanges."""

    # transformers' own class, its rotary embedding, and the names that its forward takes; set by a
    # subclass of both.
    original: type[Any]
    rope: Rope
    takes: frozenset[str]
    is_fused_indexer = True
    # Whether the last dimensions of a head are rotated, not the first.
    rotates_last = False

    def forward(
        self,
        hidden_states: Tensor,
        q_resid: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: KeyRanges | Tensor,
        position_ids: Tensor | None = None,
        cache: Any = None,
        past_key_values: Any = None,
    ) -> Tensor:
        """Select the keys with the highest scores: positions [B, S, K], int32; -1 for none.

        Args:
            hidden_states: [B, S, H].
            q_resid: [B, S, Q], the normed query latents.
            position_embeddings: cos and sin, [B or 1, S, R].
            attention_mask: KeyRanges, or a mask [B, S, T] for which transformers' own code runs.
            cache: the cache whose `update_indexer` keeps the keys; None for none.
            past_key_values: the same, as transformers before 5.24 calls it.
        """
        cache = past_key_values if cache is None else cache
        given = {
            "hidden_states": hidden_states,
            "q_resid": q_resid,
            "position_embeddings": position_embeddings,
            "position_ids": position_ids,
            "cache": cache,
            "past_key_values": cache,
        }
        given = {name: value for name, value in given.items() if name in self.takes}
        if not isinstance(attention_mask, KeyRanges):
            return self._select_by_transformers(attention_mask, given)
        reason = self._why_not(hidden_states, position_embeddings)
        if reason is None:
            # An indexer learns only from its own loss.
            with torch.set_grad_enabled(loss_of(self) is not None):
                detached = hidden_states.detach()
                query = self._queries(detached, q_resid.detach(), position_ids)
                return self._select(query, detached, position_embeddings, attention_mask, cache)
        warn_once(reason)
        mask = attention_mask.dense(hidden_states.device)[:, 0]
        mask = mask.expand(hidden_states.shape[0], -1, -1)
        selected = self._select_by_transformers(mask, given)
        # A query that sees fewer than K keys has masked keys in the rest.
        return torch.where(mask.gather(-1, selected.long()), selected, -1)

    @torch.no_grad()
    def _select_by_transformers(self, mask: Tensor, given: dict[str, Any]) -> Tensor:
        selected: Tensor = self.original.forward(self, attention_mask=mask, **given)
        return selected

    def _queries(
        self: Any, hidden_states: Tensor, q_resid: Tensor, position_ids: Tensor | None
    ) -> Tensor:
        """Compute the queries [B, S, N, D] before the rotation."""
        found: Tensor = self.wq_b(q_resid).unflatten(-1, (self.n_heads, self.head_dim))
        return found

    def _why_not(
        self: Any, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor]
    ) -> str | None:
        device = hidden_states.device
        # Queries and keys are rotated in this dtype, as in transformers.
        dtype = torch.promote_types(hidden_states.dtype, position_embeddings[0].dtype)
        sizes = self.n_heads, self.head_dim, self.index_topk
        return refusal_of("indexer", device, dtype, *sizes)

    def _select(
        self: Any,
        query: Tensor,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        ranges: KeyRanges,
        cache: Any,
    ) -> Tensor:
        batch, tokens, _ = hidden_states.shape
        key = self.wk(hidden_states).to(self.k_norm.weight.dtype)
        key = self.k_norm(key).to(hidden_states.dtype)[:, :, None]
        # Layers of Mistral Large 4 may have no rotation.
        if getattr(self, "use_rope", True):
            first = self.head_dim - self.qk_rope_head_dim if self.rotates_last else 0
            end = first + self.qk_rope_head_dim
            cos, sin = (each.detach() for each in position_embeddings)
            pairs = query[..., first:end], key[..., first:end]
            rotated = self.rope(*pairs, cos, sin, unsqueeze_dim=2)
            query, key = (
                torch.cat([rows[..., :first], some, rows[..., end:]], -1)
                for rows, some in zip((query, key), rotated, strict=True)
            )
        key = key.squeeze(2)
        if cache is not None:
            key = cache.update_indexer(key, self.layer_idx)
        # transformers' positive factors do not change the order.
        weights = self.weights_proj(hidden_states.to(self.weights_proj.weight.dtype)).float()
        if ranges.segments is None:
            whole: Tensor = self._call_op(query, key[:, :, None], weights, layout_key="BSND")
            return whole
        pitch, size = row_pitch(key), self.head_dim
        if pitch is None:
            pitch, flat = key.shape[1], key.reshape(-1, 1, size)
        else:
            flat = key.as_strided((batch * pitch, 1, size), (size, size, 1))
        found = self._call_op(
            query.flatten(0, 1),
            flat,
            weights.flatten(0, 1),
            actual_seq_lengths_query=ranges.segments.query_ends,
            actual_seq_lengths_key=ranges.segments.key_ends(pitch),
            layout_query="TND",
            layout_key="TND",
        ).view(batch, tokens, -1)
        return torch.where(found < 0, -1, (found + ranges.segments.shift).clamp(min=-1))

    def _call_op(self: Any, query: Tensor, key: Tensor, weights: Tensor, **options: Any) -> Tensor:
        """Select positions [.., K]; an indexer that learns keeps their scores."""
        options["sparse_count"] = self.index_topk
        ops, loss = torch.ops.custom_pypto, loss_of(self)
        if loss is None:
            positions: Tensor = ops.npu_lightning_indexer_pto(query, key, weights, **options)
        else:
            positions, scores = ops.npu_lightning_indexer(
                query, key, weights, return_value=True, **options
            )
            loss.expect(scores.squeeze(-2) * (self.n_heads**-0.5 * self.head_dim**-0.5))
        return positions.squeeze(-2)


class LastRotatedIndexer(FusedIndexer):
    """The indexer of HY-V4."""

    rotates_last = True


class ScaledIndexer(FusedIndexer):
    """The indexer of Mistral Large 4: its queries come from hidden states, scaled by positions."""

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: KeyRanges | Tensor,
        position_ids: Tensor | None = None,
        cache: Any = None,
        past_key_values: Any = None,
    ) -> Tensor:
        """Select as FusedIndexer does; there are no query latents."""
        inputs = hidden_states, hidden_states, position_embeddings, attention_mask, position_ids
        return super().forward(*inputs, cache, past_key_values)

    def _queries(
        self: Any, hidden_states: Tensor, q_resid: Tensor, position_ids: Tensor | None
    ) -> Tensor:
        query = super()._queries(hidden_states, self.q_input_norm(hidden_states), position_ids)
        scaled: Tensor = self.softmax_scaling(query, position_ids, head_dim_first=False)
        return scaled
