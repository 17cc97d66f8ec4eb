"""How DeepSeek-V4 chooses experts, and its experts with a limit. vLLM has both only for AMX."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from .names import CPURouter, CPUUnquantizedExperts, DeepseekV4MoE, UnquantizedFusedMoEMethod


class Router(CPURouter):  # type: ignore[misc]
    """Chooses by the root of softplus plus a bias, or by a table of the tokens."""

    def _compute_routing(
        self,
        hidden_states: Tensor,
        router_logits: Tensor,
        indices_type: Any,
        *,
        input_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return weights and experts, [tokens, experts of a token]."""
        scores = softplus(router_logits.float()).sqrt()
        if self._hash_indices_table is not None:
            chosen = self._hash_indices_table[input_ids].long()
        else:
            chosen = (scores + self.e_score_correction_bias).topk(self.top_k).indices
        weights = scores.gather(1, chosen)
        weights = weights * (self.routed_scaling_factor / weights.sum(-1, keepdim=True))
        return weights, chosen.int()


class Experts(CPUUnquantizedExperts):  # type: ignore[misc]
    """Limits what enters the product of an expert; vLLM's for weights of 16 bits does not."""

    def process_weights_after_loading(self, layer: Any) -> None:
        """Leave the weights as they are; vLLM's packs them for its kernel."""

    def apply(
        self,
        output: Tensor,
        hidden_states: Tensor,
        w1: Tensor,
        w2: Tensor,
        topk_weights: Tensor,
        topk_ids: Tensor,
        *_: Any,
        **__: Any,
    ) -> None:
        """Write the weighted sum of each token's experts to ``output`` [tokens, H]."""
        limit = self.moe_config.swiglu_limit or math.inf
        inputs = hidden_states, w1, w2, topk_weights, topk_ids
        torch.ops.custom_pypto_vllm.multiply_by_experts(output, *inputs, limit)


def _multiply_by_experts(
    output: Tensor, x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, ids: Tensor, limit: float
) -> None:
    total = torch.zeros_like(output, dtype=torch.float32)
    for expert in sorted(set(ids.flatten().tolist())):
        token, slot = (ids == expert).nonzero(as_tuple=True)
        gate, up = linear(x[token], w1[expert]).chunk(2, -1)
        inner = silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)
        weight = weights[token, slot].unsqueeze(-1).float()
        total.index_add_(0, token, linear(inner, w2[expert]) * weight)
    output.copy_(total)


# One op for a compiled graph, which cannot follow which experts have tokens.
_LIBRARY: Any = torch.library.Library("custom_pypto_vllm", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "multiply_by_experts(Tensor(a!) output, Tensor x, Tensor w1, Tensor w2, Tensor weights,"
    " Tensor ids, float limit) -> ()"
)
_LIBRARY.impl("multiply_by_experts", _multiply_by_experts, "CPU")
torch.library.register_fake(
    "custom_pypto_vllm::multiply_by_experts", lambda *args: None, lib=_LIBRARY
)


class ServedMoE(DeepseekV4MoE):  # type: ignore[misc]
    """vLLM's layer with that choice and these experts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        router, method = self.experts.router, self.experts.routed_experts.quant_method
        if type(router) is not CPURouter or type(method) is not UnquantizedFusedMoEMethod:
            raise NotImplementedError(
                f"custom_pypto_vllm: vLLM chose {type(router).__name__} and {type(method).__name__}"
                " for DeepSeek-V4's experts, and the ops serve CPURouter and"
                " UnquantizedFusedMoEMethod: unset VLLM_MOE_ROUTING_SIMULATION_STRATEGY"
            )
        router.__class__ = Router
        method.experts_cls = Experts
