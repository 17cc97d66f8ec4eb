"""The indexer of GLM-5.3: it selects pools of tokens, and each pool has one key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from .fallback import MASK_REASON, warn_once
from .growing_cache import append
from .selection import select_rows
from .support import NAME, refusal_of

# The name of the pools in a layer of a cache.
_KEPT = "_custom_pypto_pools"


@dataclass(frozen=True)
class Pools:
    """What is kept of a layer's pools: one row for each complete pool of its tokens.

    Attributes:
        packed: transformers' cached states of all tokens, of which the rows are made. If the cache
            holds another tensor now, it was cropped, reordered or reset, and the rows are stale.
        writes: how often that tensor had been written to; a static cache is reset in place.
        real: [B, T] booleans, the tokens that are not padding.
        complete: [B], the complete pools of a sequence.
        rows: [B, P, D]; a sequence with fewer pools has any values in the rest.
    """

    packed: Tensor
    writes: int
    real: Tensor
    complete: Tensor
    rows: Tensor


class PooledIndexer:
    """Mixin for transformers' indexer class: selects by the op, and keeps the pools."""

    # transformers' own class, and the names that its forward takes; set by a subclass of both.
    original: type[Any]
    takes: frozenset[str]

    @torch.no_grad()
    def forward(
        self: Any,
        hidden_states: Tensor,
        q_resid: Tensor,
        attention_mask: Tensor,
        cache: Any = None,
        past_key_values: Any = None,
    ) -> Tensor:
        """Select the tokens of the best pools, and the tail: positions [B, S, K], int32; -1: none.

        Args:
            hidden_states: [B, S, H].
            q_resid: [B, S, Q], the normed query latents.
            attention_mask: [B, S] booleans, False for padding.
            cache: the cache whose `update_indexer` keeps the states; None for none.
            past_key_values: the same, as transformers before 5.24 calls it.
        """
        cache = past_key_values if cache is None else cache
        inputs = hidden_states, q_resid, attention_mask
        # torch.compile cannot trace a number of pools.
        if self.config._attn_implementation == NAME and not torch.compiler.is_compiling():
            kept = self._kept_pools(cache, attention_mask)
            real = torch.cat([kept.real, attention_mask], 1)
            reason = self._why_not(hidden_states, real)
            if reason is None:
                found: Tensor = self._select(*inputs, cache, kept, real)
                return found
            warn_once(reason)
        name = "cache" if "cache" in self.takes else "past_key_values"
        selected: Tensor = self.original.forward(self, *inputs, **{name: cache})
        if self.config._attn_implementation == NAME:
            # transformers selects tokens twice where padding is between them; the op counts both.
            selected = selected.sort(-1).values
            is_again = selected[..., 1:] == selected[..., :-1]
            selected[..., 1:].masked_fill_(is_again, -1)
        return selected

    def _kept_pools(self: Any, cache: Any, attention_mask: Tensor) -> Pools:
        """Return what is known of the tokens before these."""
        none = attention_mask.new_zeros(len(attention_mask), dtype=torch.long)
        if cache is None or not cache.layers[self.layer_idx].is_indexer_initialized:
            return Pools(none, 0, attention_mask[:, :0], none, none)
        layer = cache.layers[self.layer_idx]
        # The attention has appended its keys already.
        before = int(layer.get_seq_length()) - attention_mask.shape[1]
        kept: Pools | None = getattr(layer, _KEPT, None)
        if (
            kept
            and kept.packed is layer.indexer_keys
            and kept.writes == _writes(kept.packed)
            and kept.real.shape[1] == before
        ):
            return kept
        return Pools(none, 0, layer.indexer_keys[:, :before, -1].bool(), none, none)

    def _why_not(self: Any, hidden_states: Tensor, real: Tensor) -> str | None:
        begins = (real[:, 1:] & ~real[:, :-1]).sum(-1) + real[:, 0]
        if bool((begins > 1).any()):
            return MASK_REASON
        device, dtype = hidden_states.device, hidden_states.dtype
        sizes = self.n_heads, self.head_dim, self.index_topk // self.index_kpool
        return refusal_of("selection", device, dtype, *sizes)

    def _select(
        self: Any,
        hidden_states: Tensor,
        q_resid: Tensor,
        attention_mask: Tensor,
        cache: Any,
        kept: Pools,
        real: Tensor,
    ) -> Tensor:
        (batch, tokens), size = attention_mask.shape, self.index_kpool
        query = self.wq_b(q_resid).view(batch, tokens, -1, self.head_dim)
        key = self.k_norm(self.wk(hidden_states))
        gate = linear(hidden_states, self.index_kpool_compress_gate)
        packed = torch.cat([key, gate, attention_mask.to(key.dtype)[..., None]], -1)
        if cache is not None:
            packed = cache.update_indexer(packed, self.layer_idx)
        # Pools begin at the first real token. Those that end in padding are only seen from padding.
        lengths = torch.where(real.any(-1), real.shape[1] - real.byte().argmax(-1), 0)
        first, complete = real.shape[1] - lengths, lengths // size
        rows = self._append_pools(packed, first, complete, kept)
        if cache is not None:
            made = Pools(packed, _writes(packed), real, complete, rows)
            setattr(cache.layers[self.layer_idx], _KEPT, made)
        # transformers' positive factors do not change the order.
        weights = self.weights_proj(hidden_states.to(self.weights_proj.weight.dtype)).float()
        pools = select_rows(query, rows, weights, lengths, size, self.index_topk // size)
        offset, first = torch.arange(size, device=real.device), first[:, None, None]
        found = first[..., None] + pools[..., None] * size + offset
        found = torch.where(pools[..., None] < 0, -1, found).flatten(2)
        if self.index_kpool_always_select_tail:
            behind = torch.arange(tokens, device=real.device).flip(0)[:, None]
            seen = lengths[:, None, None] - behind
            tail = seen % size
            token = first + seen - tail + offset[:-1]
            found = torch.cat([found, torch.where(offset[:-1] < tail, token, -1)], -1)
        return found.masked_fill(~attention_mask[..., None], -1).int()

    def _append_pools(
        self: Any, packed: Tensor, first: Tensor, complete: Tensor, kept: Pools
    ) -> Tensor:
        """Make the rows of pools that are complete now and were not; return all rows [B, P, D]."""
        new, size = int((complete - kept.complete).max()), self.index_kpool
        rows = kept.rows if kept.rows.dim() == 3 else packed.new_empty(len(first), 0, self.head_dim)
        if not new:
            return rows
        pool = kept.complete[:, None] + torch.arange(new, device=first.device)
        token = (first[:, None] + pool * size)[..., None] + torch.arange(size, device=first.device)
        batch = torch.arange(len(first), device=first.device)[:, None]
        states = packed[batch[..., None], token.clamp(max=packed.shape[1] - 1)]
        keys, gates, _ = torch.split(states, [self.head_dim, self.head_dim, 1], -1)
        shares = (gates.float() + self.index_kpool_compress_ape.float()).softmax(2)
        made = (shares.to(keys.dtype) * keys).sum(2)
        more = int(complete.max()) - rows.shape[1]
        rows = append(rows, made.new_empty(len(first), more, self.head_dim))
        is_complete = pool < complete[:, None]
        rows[batch.expand_as(pool)[is_complete], pool[is_complete]] = made[is_complete]
        return rows


def _writes(tensor: Tensor) -> int:
    """Return how often a tensor was written to; 0 where inference mode does not count it."""
    return 0 if tensor.is_inference() else tensor._version
