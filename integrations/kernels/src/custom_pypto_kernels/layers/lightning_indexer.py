"""The indexers of DeepSeek-V3.2 and GLM-5 in transformers, on npu_lightning_indexer_pto.

Hugging Face kernels puts the forward of such a class in place of the one that a model has, and
demands that the class has nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn


def _forward_with(rope: str) -> Any:
    """Make the forward of indexers whose module calls their rotary embedding `rope`."""

    @torch.no_grad()
    def forward(
        self: Any,
        hidden_states: Tensor,
        q_resid: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor,
        position_ids: Tensor,
        past_key_values: Any = None,
    ) -> Tensor:
        """Return the positions [B, S, K] of the keys with the highest scores, int32."""
        original = type(self)
        seen = _count_seen(attention_mask)
        if seen is None:
            selected: Tensor = original.forward(
                self,
                hidden_states,
                q_resid,
                position_embeddings,
                attention_mask,
                position_ids,
                past_key_values,
            )
            return selected
        batch, tokens, _ = hidden_states.shape
        query = self.wq_b(q_resid).view(batch, tokens, self.n_heads, self.head_dim)
        key = self.k_norm(self.wk(hidden_states)).unsqueeze(2)
        size, (cos, sin) = self.qk_rope_head_dim, position_embeddings
        query_rope, key_rope = getattr(sys.modules[original.__module__], rope)(
            query[..., :size], key[..., :size], cos, sin, unsqueeze_dim=2
        )
        query = torch.cat([query_rope, query[..., size:]], -1)
        key = torch.cat([key_rope, key[..., size:]], -1).squeeze(2)
        if past_key_values is not None:
            key = past_key_values.update_indexer(key, self.layer_idx)
        # transformers' positive factors do not change the order.
        weights = self.weights_proj(hidden_states.to(self.weights_proj.weight.dtype)).float()
        keys = attention_mask.shape[-1]
        found: Tensor = torch.ops.custom_pypto.npu_lightning_indexer_pto(
            query,
            key[:, :seen, None].to(query.dtype),
            weights,
            layout_key="BSND",
            sparse_count=min(self.index_topk, keys),
        )[:, :, 0]
        # A query that sees fewer than K keys gets the last key, which is masked, for the rest.
        return torch.where(found < 0, keys - 1, found)

    return forward


def _count_seen(mask: Tensor) -> int | None:
    """Count the keys that the last query sees, if `mask` [B, S, T] is one causal mask for all.

    Each query sees one key less than the next. None is returned for other masks, as of padding.
    """
    is_bool = mask.dtype == torch.bool
    tokens, keys = mask.shape[-2:]
    seen = int((mask[0, -1] if is_bool else mask[0, -1] == 0).sum())
    ends = torch.arange(seen - tokens + 1, seen + 1, device=mask.device)
    causal = torch.arange(keys, device=mask.device) < ends[:, None]
    if not is_bool:
        zeros = torch.zeros(tokens, keys, dtype=mask.dtype, device=mask.device)
        causal = zeros.masked_fill(~causal, torch.finfo(mask.dtype).min)
    return seen if torch.equal(mask, causal.expand_as(mask)) else None


class DeepseekV32Indexer(nn.Module):
    """Selects as `transformers.models.deepseek_v32.modeling_deepseek_v32.DeepseekV32Indexer`."""

    forward = _forward_with("apply_rotary_pos_emb")


class GlmMoeDsaIndexer(nn.Module):
    """Selects as `transformers.models.glm_moe_dsa.modeling_glm_moe_dsa.GlmMoeDsaIndexer`."""

    forward = _forward_with("apply_rotary_pos_emb_interleave")
