"""The hyper-connections of DeepSeek-V4 and GLM-5.3, on the npu_mhc ops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .support import refusal_of


class FusedHyperConnection:
    """Mixin for transformers' class: weighs the streams by the ops; else by transformers' code."""

    # transformers' own class; set by a subclass of both.
    original: type[Any]

    def forward(self: Any, hidden_streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute from streams [B, S, n, D] their weights and the input of a layer.

        Returns:
            The weights [B, S, n] of the layer's output, those of the streams [B, S, n, n], and the
            layer's input [B, S, D].
        """
        if not self.applies_to(hidden_streams):
            post, mixed, inputs = self.original.forward(self, hidden_streams)
            return post, mixed, inputs
        ops, eps = torch.ops.custom_pypto, self.hc_eps
        inputs, post, mixed, *_ = ops.npu_mhc_pre(
            hidden_streams,
            self.fn.float(),
            self.scale.float(),
            self.base.float(),
            norm_eps=self.input_norm.eps,
            hc_eps=eps,
        )
        mixed, *_ = ops.npu_mhc_sinkhorn(mixed, eps=eps, num_iters=self.hc_sinkhorn_iters)
        return post, mixed, inputs

    def applies_to(self: Any, streams: Tensor) -> bool:
        """Whether the ops take these streams."""
        count, size = self.hc_mult, streams.shape[-1]
        is_taken = count in (4, 6, 8)
        return is_taken and not refusal_of("streams", streams.device, streams.dtype, count, size)


class HyperConnectedLayer:
    """Mixin for DeepSeek-V4's layer: adds the output of a layer to the streams by npu_mhc_post."""

    original: type[Any]

    def forward(
        self: Any, hidden_states: Tensor, input_ids: Tensor | None = None, **kwargs: Any
    ) -> Tensor:
        """Compute the streams [B, S, n, D] after attention and MLP."""
        if not self.attn_hc.applies_to(hidden_states):
            streams: Tensor = self.original.forward(self, hidden_states, input_ids, **kwargs)
            return streams
        add = torch.ops.custom_pypto.npu_mhc_post
        post, mixed, inner = self.attn_hc(hidden_states)
        inner, _ = self.self_attn(self.input_layernorm(inner), **kwargs)
        streams = add(hidden_states, mixed, inner, post)
        post, mixed, inner = self.ffn_hc(streams)
        inner = self.mlp(self.post_attention_layernorm(inner), input_ids=input_ids)
        added: Tensor = add(streams, mixed, inner, post)
        return added
