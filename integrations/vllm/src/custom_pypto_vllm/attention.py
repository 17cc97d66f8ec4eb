"""The attention backend: each token attends to its selected positions in the latent cache."""

from __future__ import annotations

from typing import Any

import custom_pypto.core  # noqa: F401  loads the ops
import torch
from torch import Tensor

from .cache_rows import write_rows
from .metadata import StepMetadata, StepMetadataBuilder
from .names import AttentionBackend, MLAAttentionImpl


class IndexerBackend(AttentionBackend):  # type: ignore[misc]
    """How vLLM pages the cache of index keys. It has no attention of its own."""

    supported_dtypes = (torch.float32, torch.float16, torch.bfloat16)

    @staticmethod
    def get_name() -> str:
        """Return the name that vLLM logs."""
        return "PYPTO_INDEXER"

    @staticmethod
    def get_impl_cls() -> Any:
        """Not called: vLLM asks layers of attention only."""
        raise NotImplementedError

    @staticmethod
    def get_builder_cls() -> type[StepMetadataBuilder]:
        """Return what makes the metadata of a step."""
        return StepMetadataBuilder


class SparseBackend(IndexerBackend):
    """Attention to selected positions of the latent cache."""

    @staticmethod
    def get_name() -> str:
        """Return the name that vLLM logs."""
        return "PYPTO_MLA_SPARSE"

    @staticmethod
    def get_impl_cls() -> type[SparseAttention]:
        """Return the attention itself."""
        return SparseAttention

    @classmethod
    def is_mla(cls) -> bool:
        """Return that the cache holds latents."""
        return True

    @classmethod
    def is_sparse(cls) -> bool:
        """Return that an indexer selects positions."""
        return True


class SparseAttention(MLAAttentionImpl):  # type: ignore[misc]
    """npu_sparse_flash_attention on the latent cache, in place."""

    is_sparse = True
    # One path for prefill and decode, so that chunked prefill and prefix caching need no other.
    supports_dense_mha_prefill = False
    supports_pcp = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        *args: Any,
        kv_lora_rank: int,
        topk_indices_buffer: Tensor,
        **kwargs: Any,
    ) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.kv_lora_rank = kv_lora_rank
        # One for all layers: a layer without an indexer attends to what the layer before selected.
        self.topk_indices_buffer = topk_indices_buffer

    def do_kv_cache_update(
        self,
        kv_c_normed: Tensor,
        k_pe: Tensor,
        kv_cache: Tensor,
        slot_mapping: Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Write this step's latents to the cache; while vLLM measures memory, there is none."""
        if kv_cache.numel():
            write_rows(kv_cache, slot_mapping.flatten(), kv_c_normed, k_pe.flatten(1))

    def forward_mqa(
        self,
        q: tuple[Tensor, Tensor],
        kv_c_and_k_pe_cache: Tensor,
        attn_metadata: StepMetadata,
        layer: Any,
    ) -> tuple[Tensor, None]:
        """Attend with queries in the latents' space: [tokens, heads, latent], [.., rope]."""
        latent, rope = q
        tokens = attn_metadata.num_actual_tokens
        cache = kv_c_and_k_pe_cache.unsqueeze(2)
        out, _ = torch.ops.custom_pypto.npu_sparse_flash_attention(
            latent,
            rope,
            cache[..., : self.kv_lora_rank],
            cache[..., self.kv_lora_rank :],
            self.topk_indices_buffer[:tokens].unsqueeze(1),
            attn_metadata.block_table,
            attn_metadata.seq_lens,
            scale=self.scale,
            actual_seq_lengths_query=attn_metadata.query_ends,
        )
        return out, None
