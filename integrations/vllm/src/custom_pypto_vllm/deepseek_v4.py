"""vLLM's DeepSeek-V4 on the ops. Its own kernels need a CPU with AMX."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import custom_pypto.core  # noqa: F401  loads the ops
import torch
from torch import Tensor

from . import names
from .attention import IndexerBackend
from .cache_rows import write_rows
from .experts import ServedMoE
from .hyper_connections import MhcHead, MhcPost, MhcPre
from .metadata import StepMetadata
from .names import DeepseekV4Attention, KVCacheLayout, get_forward_context
from .platform import require_our_platform
from .served import serves


class RowsBackend(IndexerBackend):
    """How vLLM pages the caches of a layer, whose pages have several sizes."""

    @staticmethod
    def get_name() -> str:
        """Return the name that vLLM logs."""
        return "PYPTO_ROWS"

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[Any, ...]:
        """Return the layout in which a block has a page of each layer.

        In the other layouts, vLLM makes all pages as large as the largest one. A page of rows for
        128 tokens each would hold thousands of tokens, and no shorter prefix would be reused.
        """
        return (KVCacheLayout.BLHNC,)


class CompressedAttention(DeepseekV4Attention):  # type: ignore[misc]
    """A window of tokens, and compressed rows of all earlier ones, with rows of the model's dtype.

    Cached rows are [blocks, block_size, D]. A row of the window's cache stands for a token, a row
    of the other for 4 or 128. vLLM keeps the compressor's state as npu_compressor wants it.
    """

    use_fp8_ds_mla_layout = False
    backend_cls = swa_backend_cls = RowsBackend

    def __init__(self, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(vllm_config, *args, **kwargs)
        dtype = vllm_config.model_config.dtype
        self.kv_cache_torch_dtype = self.swa_cache_layer.dtype = dtype
        compressors = [self.compressor]
        if self.indexer is not None:
            keys = self.indexer.k_cache
            keys.head_dim, keys.dtype = self.indexer.head_dim, dtype
            keys.get_attn_backend = lambda: RowsBackend
            compressors.append(self.indexer.compressor)
        _keep_weight(self.wo_a)
        for each in filter(None, compressors):
            each.state_cache.get_attn_backend = lambda: RowsBackend
            _keep_weight(each.fused_wkv_wgate)

    @classmethod
    def get_padded_num_q_heads(cls, num_heads: int) -> int:
        """Return as many heads: the ops want no padding."""
        return num_heads

    def forward(self, positions: Tensor, hidden_states: Tensor, *_: Any) -> Tensor:
        """Attend, as one op for a compiled graph, which does not know the caches."""
        out = torch.empty_like(hidden_states)
        torch.ops.custom_pypto_vllm.attend(hidden_states, positions, out, self.prefix)
        return out

    def forward_mqa(self, *_: Any) -> None:
        """Not called: `attend` does all."""
        raise NotImplementedError

    _o_proj = forward_mqa

    def attend(self, hidden_states: Tensor, positions: Tensor, metadata: dict[str, Any]) -> Tensor:
        """Return the attention's output for this step's tokens [tokens, H]."""
        step: StepMetadata = metadata[self.swa_cache_layer.prefix]
        angles = self.rotary_emb.cos_sin_cache[positions]
        latent, row = self.fused_wqa_wkv(hidden_states)[0].split(
            [self.q_lora_rank, self.head_dim], -1
        )
        latent = self.q_norm(latent)
        query = self.wq_b(latent).view(-1, self.n_local_heads, self.head_dim)
        query = torch.nn.functional.rms_norm(query.float(), (self.head_dim,), eps=self.eps)
        query = rotate(query, angles).to(hidden_states.dtype)
        window = self.swa_cache_layer.kv_cache
        write_rows(window, step.slot_mapping, rotate(self.kv_norm(row), angles))
        compressed = {}
        if self.compressor is not None:
            rows: StepMetadata = metadata[self.prefix]
            self._compress(self.compressor, hidden_states, self.kv_cache, metadata)
            compressed = {
                "cmp_kv": self.kv_cache.unsqueeze(2),
                "cmp_block_table": rows.block_table,
                "seqused_cmp_kv": rows.seq_lens // self.compress_ratio,
                "cmp_ratio": self.compress_ratio,
            }
            if self.indexer is not None:
                picked = self._select(hidden_states, latent, angles, metadata)
                compressed["cmp_sparse_indices"] = picked
        out, _ = torch.ops.custom_pypto.npu_sparse_flash_mla(
            query,
            ori_kv=window.unsqueeze(2),
            ori_block_table=step.block_table,
            cu_seqlens_q=step.query_bounds,
            seqused_ori_kv=step.seq_lens,
            sinks=self.attn_sink,
            softmax_scale=self.scale,
            ori_win_left=self.window_size - 1,
            layout_q="TND",
            layout_kv="PA_BBND",
            **compressed,
        )
        # Values carry their rotation: they are keys, too.
        grouped = rotate(out, angles, -1).view(len(out), self.n_local_groups, -1)
        weight = self.wo_a.weight.view(self.n_local_groups, self.o_lora_rank, -1)
        grouped = torch.bmm(grouped.transpose(0, 1), weight.mT).transpose(0, 1)
        projected: Tensor = self.wo_b(grouped.flatten(1))
        return projected

    def _compress(
        self, compressor: Any, hidden_states: Tensor, cache: Tensor, metadata: dict[str, Any]
    ) -> None:
        """Write the rows that this step's tokens close to a paged cache."""
        state: StepMetadata = metadata[compressor.state_cache.prefix]
        rows: StepMetadata = metadata[compressor.k_cache_prefix]
        ratio = compressor.compress_ratio
        starts = state.seq_lens - state.query_bounds.diff()
        values, scores = compressor.fused_wkv_wgate.weight.chunk(2)
        closed = torch.ops.custom_pypto.npu_compressor(
            hidden_states,
            values,
            scores,
            compressor.state_cache.kv_cache,
            compressor.ape,
            ratio,
            state_block_table=state.block_table,
            cu_seqlens=state.query_bounds,
            start_pos=starts,
            coff=compressor.coff,
        )
        first = starts // ratio
        counts = state.seq_lens // ratio - first
        ends = counts.cumsum(0)
        request = torch.repeat_interleave(counts)
        index = torch.arange(len(request), device=request.device)
        index += (first + counts - ends)[request]
        block_size = cache.shape[1]
        blocks = rows.block_table[request, index // block_size].long()
        closed = compressor.norm(closed[: len(index)])
        closed = rotate(closed, self.rotary_emb.cos_sin_cache[index * ratio])
        write_rows(cache, blocks * block_size + index % block_size, closed)

    def _select(
        self, hidden_states: Tensor, latent: Tensor, angles: Tensor, metadata: dict[str, Any]
    ) -> Tensor:
        """Return the compressed rows [tokens, 1, K] that each token selects; -1 for none."""
        indexer = self.indexer
        keys, cache = metadata[indexer.k_cache.prefix], indexer.k_cache.kv_cache
        self._compress(indexer.compressor, hidden_states, cache, metadata)
        query = indexer.wq_b(latent)[0].view(-1, indexer.n_head, indexer.head_dim)
        # vLLM's positive factors of the weights change no order, and would round.
        selected: Tensor = torch.ops.custom_pypto.npu_lightning_indexer_v2(
            rotate(query, angles),
            cache.unsqueeze(2),
            indexer.weights_proj(hidden_states)[0],
            indexer.topk_tokens,
            cu_seqlens_q=keys.query_bounds,
            seqused_k=keys.seq_lens // self.compress_ratio,
            cmp_residual_k=keys.seq_lens % self.compress_ratio,
            block_table=keys.block_table,
            layout_q="TND",
            layout_k="PA_BBND",
            mask_mode=3,
            cmp_ratio=self.compress_ratio,
        )[0]
        return selected


def rotate(x: Tensor, angles: Tensor, sign: int = 1) -> Tensor:
    """Rotate the last pairs of ``x`` [tokens, .., D] by angles [tokens, 2 * pairs], cos and sin."""
    columns = angles.shape[-1]
    cos, sin = angles.float().view(-1, *(1,) * (x.dim() - 2), columns).chunk(2, -1)
    even, odd = x[..., -columns::2].float(), x[..., 1 - columns :: 2].float()
    sin = sin * sign
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
    return torch.cat((x[..., :-columns], turned.to(x.dtype)), -1)


def _keep_weight(linear: Any) -> None:
    """Stop vLLM from packing a weight that the ops read."""
    linear.quant_method.process_weights_after_loading = lambda layer: None


def _attend(hidden_states: Tensor, positions: Tensor, out: Tensor, layer: str) -> None:
    context = get_forward_context()
    out.zero_()
    if not isinstance(context.attn_metadata, dict):  # vLLM measures memory, there is no cache
        return
    attention = context.no_compile_layers[layer]
    tokens = context.attn_metadata[attention.swa_cache_layer.prefix].num_actual_tokens
    inputs = hidden_states[:tokens], positions[:tokens]
    out[:tokens] = attention.attend(*inputs, context.attn_metadata)


_LIBRARY: Any = torch.library.Library("custom_pypto_vllm", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define("attend(Tensor hidden_states, Tensor positions, Tensor(a!) out, str layer) -> ()")
_LIBRARY.impl("attend", _attend, "CPU")
torch.library.register_fake("custom_pypto_vllm::attend", lambda *args: None, lib=_LIBRARY)

# What vLLM's model is built of, and what ours is.
_PARTS = {
    "DeepseekV4CPUAttention": CompressedAttention,
    "DeepseekV4MoE": ServedMoE,
    "MHCPreOp": MhcPre,
    "MHCPostOp": MhcPost,
    "HCHeadOp": MhcHead,
}


@contextmanager
def _our_parts() -> Iterator[None]:
    """Let vLLM's module name our parts while it builds a model."""
    module = vars(sys.modules[names.DeepseekV4ForCausalLM.__module__])
    theirs = {name: module[name] for name in _PARTS}
    module.update(_PARTS)
    try:
        yield
    finally:
        module.update(theirs)


class DeepseekV4ForCausalLM(names.DeepseekV4ForCausalLM):  # type: ignore[misc]
    """vLLM's model, built of our parts if the ops serve the configuration."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        if not serves(vllm_config):
            super().__init__(vllm_config=vllm_config, prefix=prefix)
            return
        require_our_platform()
        with _our_parts():
            super().__init__(vllm_config=vllm_config, prefix=prefix)
