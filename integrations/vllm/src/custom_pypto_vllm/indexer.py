"""vLLM's indexer of a layer, with the ops for its cache and its selection."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .index_cache import make_index_cache
from .names import get_forward_context


class OpIndexer(nn.Module):
    """Projects as vLLM's indexer does, with its weights. Queries and keys stay as they are.

    Its positive factor of all scores is left out: it changes no order, and would round.
    """

    def __init__(self, indexer: Any) -> None:
        super().__init__()
        self.wq_b = indexer.wq_b
        self.wk_weights_proj = indexer.wk_weights_proj
        self.k_norm = indexer.k_norm
        self.heads: int = indexer.n_head
        self.size: int = indexer.head_dim
        self.rope: int = indexer.rope_dim
        # vLLM's layer reads it.
        self.topk_tokens = indexer.topk_tokens
        self.k_cache = indexer.k_cache = make_index_cache(self.size, indexer)

    def forward(
        self,
        hidden_states: Tensor,
        query_latent: Tensor,
        positions: Tensor,
        rotary: nn.Module,
        attention_query: Tensor,
    ) -> None:
        """Write the positions that each token selects to the buffer that all layers share.

        A compiled graph does not know that attention reads the buffer. It keeps the order because
        the selection is declared to write ``attention_query``, though it does not.
        """
        query = self.wq_b(query_latent)[0].view(-1, self.heads, self.size)
        key, weights = self.wk_weights_proj(hidden_states)[0].split([self.size, self.heads], -1)
        query, plain_query = query.split([self.rope, self.size - self.rope], -1)
        key, plain_key = self.k_norm(key).split([self.rope, self.size - self.rope], -1)
        query, key = rotary(positions, query, key.unsqueeze(1))
        torch.ops.custom_pypto_vllm.select(
            torch.cat((query, plain_query), -1),
            key.squeeze(1),
            plain_key,
            weights,
            attention_query,
            self.k_cache.prefix,
        )


def _select(
    query: Tensor,
    rotated: Tensor,
    plain: Tensor,
    weights: Tensor,
    attention_query: Tensor,
    layer: str,
) -> None:
    """Write this step's keys to the layer's cache, and the positions that they select."""
    context = get_forward_context()
    if not isinstance(context.attn_metadata, dict):  # vLLM measures memory, there is no cache
        return
    step, cache = context.attn_metadata[layer], context.no_compile_layers[layer]
    tokens = step.num_actual_tokens
    cache.write(rotated[:tokens], plain[:tokens], step.slot_mapping)
    selected = cache.selected
    selected[:tokens] = cache.select(query[:tokens], weights[:tokens], step, selected.shape[1])


# torch.library.custom_op would do the same, at ten times the cost of a call.
_LIBRARY: Any = torch.library.Library("custom_pypto_vllm", "DEF")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "select(Tensor query, Tensor rotated, Tensor plain, Tensor weights, Tensor(a!) attention_query,"
    " str layer) -> ()"
)
_LIBRARY.impl("select", _select, "CPU")
torch.library.register_fake("custom_pypto_vllm::select", lambda *args: None, lib=_LIBRARY)
