"""vLLM's attention layer, with our parts for the models that the ops serve."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from torch import Tensor

from .names import MultiHeadLatentAttentionWrapper, get_current_vllm_config
from .platform import require_our_platform
from .served import serves

_SIGNATURE = inspect.signature(MultiHeadLatentAttentionWrapper.__init__)


@MultiHeadLatentAttentionWrapper.register_oot
class SparseAttentionLayer(MultiHeadLatentAttentionWrapper):  # type: ignore[misc]
    """The layer of a served model. vLLM asks it for that of every model with MLA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not serves(get_current_vllm_config()):
            # vLLM's own class, not ours with its methods.
            self.__class__ = MultiHeadLatentAttentionWrapper
            self.__init__(*args, **kwargs)  # type: ignore[misc]
            return
        require_our_platform()
        # Here, so that processes that serve another model load no op.
        from .indexer import OpIndexer
        from .linear_products import replace_products_of_heads
        from .rotary import flat_rotary

        call = _SIGNATURE.bind(self, *args, **kwargs)
        modules = call.arguments["mla_modules"]
        call.arguments["mla_modules"] = dataclasses.replace(
            modules,
            rotary_emb=flat_rotary(modules.rotary_emb),
            indexer=None if modules.indexer is None else OpIndexer(modules.indexer),
            indexer_rotary_emb=flat_rotary(modules.indexer_rotary_emb),
        )
        super().__init__(*call.args[1:], **call.kwargs)
        replace_products_of_heads(self.mla_attn)

    def forward(self, positions: Tensor, hidden_states: Tensor, *_: Any) -> Tensor:
        """Do what vLLM's layer does, and give the query to the indexer, which says why."""
        latents = self.fused_qkv_a_proj(hidden_states)[0]
        query_latent, latent, rope = latents.split(
            [self.q_lora_rank, self.kv_lora_rank, self.qk_rope_head_dim], -1
        )
        query_latent = self.q_a_layernorm(query_latent)
        query = self.q_b_proj(query_latent)[0].view(-1, self.num_heads, self.qk_head_dim)
        query[..., self.qk_nope_head_dim :], rope = self.rotary_emb(
            positions, query[..., self.qk_nope_head_dim :], rope.unsqueeze(1)
        )
        if self.indexer is not None and not self.skip_topk:
            self.indexer(hidden_states, query_latent, positions, self.indexer_rope_emb, query)
        out = self.mla_attn(
            query,
            self.kv_a_layernorm(latent),
            rope,
            output_shape=(hidden_states.shape[0], self.num_heads * self.v_head_dim),
        )
        projected: Tensor = self.o_proj(out)[0]
        return projected
