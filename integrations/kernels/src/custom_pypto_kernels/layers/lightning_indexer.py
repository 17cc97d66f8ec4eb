"""The indexers of DeepSeek-V3.2 and GLM-5 in transformers, on npu_lightning_indexer_pto.

Hugging Face kernels puts the forward of such a class in place of the one that a model has, and
demands that the class has nothing else, and forward the parameters of the model's. A class is made
when it is asked for: only then transformers is imported.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from typing import Any

import torch
from torch import Tensor, nn

# The folder in transformers.models, and the function that rotates there.
_INDEXERS = {
    "DeepseekV32Indexer": ("deepseek_v32", "apply_rotary_pos_emb"),
    "GlmMoeDsaIndexer": ("glm_moe_dsa", "apply_rotary_pos_emb_interleave"),
}
_INPUTS = ("self", "hidden_states", "q_resid", "position_embeddings", "attention_mask")


def __getattr__(name: str) -> Any:
    if name not in _INDEXERS:
        raise AttributeError(f"{__name__} has no layer {name}")
    folder, rope = _INDEXERS[name]
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    globals()[name] = type(name, (nn.Module,), {"forward": _make_forward(module, name, rope)})
    return globals()[name]


def _make_forward(module: Any, name: str, rope: str) -> Any:
    """Make the forward that selects by the op, or return an unknown one of transformers itself."""
    own, rotate = getattr(module, name).forward, getattr(module, rope)
    inputs, angles = (*_INPUTS, "position_ids"), ("q", "k", "cos", "sin")
    for function, known in (
        # transformers 5.24 renamed the cache.
        (own, [(*inputs, "past_key_values"), (*inputs, "cache")]),
        # With transformers 5.21, kernels has wrapped the rotation, which shows no parameters.
        (
            rotate,
            [
                ("args", "kwargs"),
                (*angles, "unsqueeze_dim"),
                (*angles, "position_ids", "unsqueeze_dim"),
            ],
        ),
    ):
        given = tuple(inspect.signature(function).parameters)
        if given not in known:
            warnings.warn(
                f"custom_pypto_kernels: transformers' own {name} runs, which is slower: its"
                f" {function.__name__} takes {', '.join(given)}, which is not known",
                stacklevel=4,
            )
            return own
    return functools.wraps(own)(_forward_with(rotate))


def _forward_with(rotate: Any) -> Any:
    """Make the forward of indexers whose rotary embedding is `rotate`."""

    @torch.no_grad()
    def forward(
        self: Any,
        hidden_states: Tensor,
        q_resid: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor,
        *more: Any,
        **named: Any,
    ) -> Any:
        """Return the positions [B, S, K] of the keys with the highest scores, int32."""
        seen = _count_seen(attention_mask)
        if seen is None:
            inputs = hidden_states, q_resid, position_embeddings, attention_mask
            return type(self).forward(self, *inputs, *more, **named)
        batch, tokens, _ = hidden_states.shape
        query = self.wq_b(q_resid).view(batch, tokens, self.n_heads, self.head_dim)
        key = self.k_norm(self.wk(hidden_states)).unsqueeze(2)
        size, (cos, sin) = self.qk_rope_head_dim, position_embeddings
        query_rope, key_rope = rotate(query[..., :size], key[..., :size], cos, sin, unsqueeze_dim=2)
        query = torch.cat([query_rope, query[..., size:]], -1)
        key = torch.cat([key_rope, key[..., size:]], -1).squeeze(2)
        for each in (*more, *named.values()):
            if hasattr(each, "update_indexer"):
                key = each.update_indexer(key, self.layer_idx)
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
